package node

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"atoll/gossip/hello"
	"atoll/tensor/codec"
)

// firstRecord is what a node says of itself before it knows the model.
func (n *node) firstRecord() hello.Record {
	r := hello.Record{
		Protocol: hello.Protocol, Run: n.run, Author: n.self, Role: n.role(),
		Precision: "f32", MemoryBytes: memoryBytes(), Agent: Agent, StartedMs: n.started.UnixMilli(),
		Codecs:  codecs(),
		Devices: []hello.Device{{Kind: "cpu", Name: CPUName(), Count: 1, MemoryBytes: memoryBytes()}},
	}
	if !n.cfg.Observe {
		r.Trainer = hello.Builtin
	}
	return r
}

// codecs are the kinds of payloads that this program decodes.
func codecs() (numbers []uint8) {
	for _, k := range codec.Kinds() {
		numbers = append(numbers, uint8(k))
	}
	return numbers
}

// CPUName is what this machine calls its processor, with the threads that Go uses of it.
func CPUName() string {
	name := strings.TrimSpace(cpuid.CPU.BrandName)
	if name == "" {
		name = runtime.GOARCH
	}
	return name + " (" + strconv.Itoa(runtime.GOMAXPROCS(0)) + " threads)"
}

// memoryBytes is the memory of this machine, 0 if the system does not say.
func memoryBytes() uint64 { return procValue("/proc/meminfo", "MemTotal:") }

// RSSBytes is the memory that this process occupies, 0 if the system does not say.
func RSSBytes() uint64 { return procValue("/proc/self/status", "VmRSS:") }

// PeakRSSBytes is the most memory that this process has occupied, 0 if the system does not
// say.
func PeakRSSBytes() uint64 { return procValue("/proc/self/status", "VmHWM:") }

// OpenFiles is how many descriptors this process has open, 0 if the system does
// not say.
func OpenFiles() int {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(fds) - 1 // without the one that this reading took
}

// procValue reads a "Name:  123 kB" line of a file that Linux provides.
func procValue(path, name string) uint64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) >= 2 && fields[0] == name {
			kb, err := strconv.ParseUint(fields[1], 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return 0
}

// maxRecordAddrs is how many addresses a capability record carries.
const maxRecordAddrs = 16

func limitAddrs(addrs []string) []string { return addrs[:min(len(addrs), maxRecordAddrs)] }

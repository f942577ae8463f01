//go:build unix

package token

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkTexts encodes files in pieces of 4 KiB, as documents come, and tells MB for each
// second of one processor, which others on the machine do not change much:
//
//	ATOLL_TOKENIZERS=tokenizer.json ATOLL_TEXTS=a.txt:b.txt go test -run xxx -bench Texts -cpu 1 ./tensor/token
//
// judge.py speed does the same with the judge.
func BenchmarkTexts(b *testing.B) {
	for _, file := range filepath.SplitList(os.Getenv("ATOLL_TOKENIZERS")) {
		for _, name := range filepath.SplitList(os.Getenv("ATOLL_TEXTS")) {
			b.Run(load(b, file).Family()+"/"+filepath.Base(name), func(b *testing.B) { benchmarkText(b, file, name) })
		}
	}
}

func benchmarkText(b *testing.B, file, name string) {
	raw, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	text := []byte(strings.ToValidUTF8(string(raw), "\ufffd"))
	tokenizer := load(b, file)
	var ids []int32
	size, used := 0, time.Duration(0)
	for b.Loop() {
		e := tokenizer.NewEncoder()
		began := processorTime(b)
		for at := 0; at < len(text); at += 4096 {
			ids = e.Append(ids[:0], text[at:min(at+4096, len(text))])
		}
		used += processorTime(b) - began
		size += len(text)
	}
	b.ReportMetric(float64(size)/used.Seconds()/1e6, "MB/cpu-s")
}

// processorTime is what the process has used so far.
func processorTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

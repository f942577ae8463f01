package node

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"atoll/node/status"
	"atoll/optimizer/trainer/corpus/shards"
)

// On a real file system that is full and then read-only: opt in, as root.
func TestRealFullDisk(t *testing.T) {
	if !long || os.Geteuid() != 0 {
		t.Skip("mounts a file system: set ATOLL_LONG=1 and run as root")
	}
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("cannot mount a tmpfs here: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, 0); err != nil {
			t.Error(err)
		}
	})
	cfg := Config{Dir: filepath.Join(mount, "node"), Genesis: toyGenesis(1 << 40).Encode(), Data: toyText(t), Pace: slowPace}
	m := launch(t, cfg)
	m.until("it contributes", contributes)
	litter := filepath.Join(mount, "litter")
	fill(t, litter)
	m.until("it says so", func(s status.Snapshot) bool { return len(diskEvents(s)) == 1 })
	if err := os.Remove(litter); err != nil {
		t.Fatal(err)
	}
	m.until("it recovers", func(s status.Snapshot) bool { return len(diskEvents(s)) == 2 })
	end := m.leave()
	checkNothingLost(t, cfg.Dir, end)
	checkLogged(t, cfg.Dir, end)

	fill(t, litter)
	if err := fails(t, cfg); !strings.Contains(err.Error(), "free space") {
		t.Errorf("started on a full disk: %v", err)
	}
	if err := syscall.Mount("", mount, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, cfg); !strings.Contains(err.Error(), "writable again") {
		t.Errorf("started on a read-only disk: %v", err)
	}
}

// fill writes a file until there is no room.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	for {
		if _, err := f.Write(block); err != nil {
			return
		}
	}
}

// A joiner on a real file system with room for the shards of a window and no more: it says so, trains, and its
// ledger is written. One that has no room for a window waits, and trains when there is room.
func TestShardsOnARealFullDisk(t *testing.T) {
	if !long || os.Geteuid() != 0 {
		t.Skip("mounts a file system: set ATOLL_LONG=1 and run as root")
	}
	c := manyShards(t, 8, 1<<20) // 2 MiB each
	g := aboutCorpus(1<<40, c.Manifest)
	w := shards.Window{Shards: 2, Steps: 20}
	first := launch(t, Config{window: w, Genesis: g.Encode(), Data: c.Path, Pace: slowPace})
	for size, fits := range map[string]bool{"size=6m": false, "size=11m": true} {
		mount := t.TempDir()
		if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, size); err != nil {
			t.Skip("cannot mount a tmpfs here: ", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(mount, 0); err != nil {
				t.Error(err)
			}
		})
		m := launch(t, Config{window: w, Dir: filepath.Join(mount, "node"), Link: first.link(), Pace: slowPace})
		s := m.until("it says so", func(s status.Snapshot) bool { return len(diskEvents(s)) > 0 })
		t.Log(diskEvents(s))
		if !fits {
			if s := m.until("it waits", func(s status.Snapshot) bool { return s.Data.Waiting }); s.Step != 0 {
				t.Errorf("%d steps without data", s.Step)
			}
			if err := syscall.Mount("", mount, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
				t.Fatal(err)
			}
		}
		s = m.until("it contributes", func(s status.Snapshot) bool { return contributes(s) && s.Step > 60 })
		if said := diskEvents(s); len(said) > 4 {
			t.Errorf("said %d things of its disk: %q", len(said), said)
		}
		end := m.leave()
		shardsAreRight(t, m.cfg.Dir)
		checkReads(t, c.Manifest, g, w, m.cfg.Dir)
		checkVerify(t, m.cfg.Dir, end)
	}
	first.leave()
}

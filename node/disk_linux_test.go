package node

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"atoll/node/status"
)

// On a real file system that is full and then read-only: opt in, as root.
func TestRealFullDisk(t *testing.T) {
	if os.Getenv("ATOLL_LONG") == "" || os.Geteuid() != 0 {
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

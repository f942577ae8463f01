package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"atoll/node/inspect"
	"atoll/node/status"
	"atoll/node/store"
)

// sickDisk fails every change with an errno while it has one.
type sickDisk struct{ errno atomic.Int32 }

func (d *sickDisk) disk() store.Disk {
	return store.Disk{Before: func(store.Op) error {
		if errno := syscall.Errno(d.errno.Load()); errno != 0 {
			return errno
		}
		return nil
	}}
}

// diskEvents are what a node said of its disk.
func diskEvents(s status.Snapshot) (texts []string) {
	for _, e := range s.Events {
		if strings.HasPrefix(e.Kind, "disk") {
			texts = append(texts, e.Said())
		}
	}
	return texts
}

// A learner whose disk fills up says so once, goes on training and publishes
// nothing. When there is room again it goes on by itself, with nothing lost.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	const budget = 120_000
	text := toyText(t)
	peer := launch(t, Config{Genesis: toyGenesis(budget).Encode(), Data: text, Pace: slowPace, Stay: true})
	sick := &sickDisk{}
	m := launch(t, Config{Link: peer.link(), Data: text, Pace: slowPace, disk: sick.disk()})
	m.until("it contributes", contributes)

	sick.errno.Store(int32(syscall.ENOSPC))
	s := m.until("it says so", func(s status.Snapshot) bool { return len(diskEvents(s)) > 0 })
	if said := diskEvents(s); len(said) != 1 || !strings.Contains(said[0], "the disk is full") || !strings.Contains(said[0], m.cfg.Dir) {
		t.Errorf("said %q", said)
	}
	full := m.until("it trains on", func(now status.Snapshot) bool { return now.TokensTrained >= s.TokensTrained+50*32 })
	sick.errno.Store(0)
	m.until("it recovers", func(s status.Snapshot) bool { return len(diskEvents(s)) > 1 })
	m.until("it publishes again", func(s status.Snapshot) bool {
		return s.Account.OwnFolded[0] > full.Account.OwnFolded[0] && s.Account.OwnFolded[1] > full.Account.OwnFolded[1]
	})
	end := m.leave()
	if said := diskEvents(end); len(said) != 2 || !strings.Contains(said[1], "no longer full") {
		t.Errorf("said %q", said)
	}
	checkNothingLost(t, m.cfg.Dir, end)
	checkLogged(t, m.cfg.Dir, end)
	if _, err := inspect.Verify(t.Context(), m.cfg.Dir); err != nil {
		t.Error(err)
	}
}

// A joiner without room for the chunks of a snapshot says so and waits with its
// snapshot source, which is not to blame; once there is room it gets in.
func TestFullDiskOfAJoiner(t *testing.T) {
	t.Parallel()
	text := toyText(t)
	peer := launch(t, Config{Genesis: toyGenesis(1 << 40).Encode(), Data: text, Pace: slowPace})
	peer.until("it has something to give", folded(2000))
	var roomy atomic.Bool
	m := launch(t, Config{Link: peer.link(), Data: text, Pace: slowPace, disk: store.Disk{Before: func(op store.Op) error {
		if !roomy.Load() && strings.Contains(op.Path, "chunks") {
			return syscall.ENOSPC
		}
		return nil
	}}})
	m.until("it says so", func(s status.Snapshot) bool { return len(diskEvents(s)) > 0 })
	roomy.Store(true)
	m.until("it contributes", contributes)
	for _, e := range m.leave().Events {
		if strings.Contains(e.Text, "another snapshot source") || strings.Contains(e.Text, "from genesis") {
			t.Errorf("%s: %s", e.Kind, e.Text)
		}
	}
	peer.leave()
}

// checkLogged: the step log has every step.
func checkLogged(t *testing.T, dir string, s status.Snapshot) {
	t.Helper()
	if sum, err := store.SumSteps(dir); err != nil || sum.Tokens != s.TokensTrained || sum.Damaged != 0 {
		t.Errorf("the step log has %+v, %v; trained are %d tokens", sum, err, s.TokensTrained)
	}
}

// A node does not begin on a disk that takes nothing, and says what to do.
func TestStartOnASickDisk(t *testing.T) {
	t.Parallel()
	genesis, text := toyGenesis(1000).Encode(), toyText(t)
	for _, c := range []struct {
		errno syscall.Errno
		want  string
	}{{syscall.ENOSPC, "free space"}, {syscall.EROFS, "writable again"}, {syscall.EIO, "another disk"}, {syscall.EACCES, "the right to write"}} {
		sick := &sickDisk{}
		cfg := Config{Dir: t.TempDir(), Genesis: genesis, Data: text, disk: sick.disk()}
		if _, _, err := store.LoadKey(cfg.Dir); err != nil {
			t.Fatal(err)
		}
		sick.errno.Store(int32(c.errno))
		if err := fails(t, cfg); !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), cfg.Dir) {
			t.Errorf("%v: %v, want one with %q", c.errno, err, c.want)
		}
	}
}

// A damaged index ends the node, and says what to do.
func TestDamagedIndexIsFatal(t *testing.T) {
	t.Parallel()
	m := launch(t, Config{Genesis: toyGenesis(1 << 40).Encode(), Data: toyText(t), Pace: slowPace})
	m.until("it contributes", contributes)
	if err := os.Truncate(filepath.Join(m.cfg.Dir, "index.db"), 4096); err != nil {
		t.Fatal(err)
	}
	<-m.ended
	if !errors.Is(m.err, store.ErrIndex) || !strings.Contains(m.err.Error(), "--fix") {
		t.Errorf("ended with %v", m.err)
	}
}

// A node whose folder is deleted or replaced says so and ends. It makes no folder of that name anew.
func TestFolderGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a folder in use stays where it is")
	}
	t.Parallel()
	for name, take := range map[string]func(dir string) error{
		"deleted": func(dir string) (err error) {
			for range 100 { // what is written meanwhile stays
				if err = os.RemoveAll(dir); err == nil {
					break
				}
			}
			return err
		},
		"moved": func(dir string) error { return os.Rename(dir, dir+".moved") },
		"replaced": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".moved"), os.Mkdir(dir, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "node")
			m := launch(t, Config{Dir: dir, Genesis: toyGenesis(1 << 40).Encode(), Data: toyText(t), Pace: slowPace})
			m.until("it contributes", contributes)
			must(t, take(dir))
			if <-m.ended; !errors.Is(m.err, ErrFolderGone) || !strings.Contains(m.err.Error(), dir) {
				t.Errorf("ends with %v", m.err)
			}
			if left, err := os.ReadDir(dir); name != "replaced" && !errors.Is(err, fs.ErrNotExist) || len(left) > 0 {
				t.Errorf("left under its name: %v, %v", left, err)
			}
		})
	}
}

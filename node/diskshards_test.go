package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"atoll/node/data"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/trainer/corpus/shards"
)

// roomFor is a disk that takes so many shards, whole or not, and no more.
type roomFor struct{ shards atomic.Int32 }

func (r *roomFor) disk() store.Disk {
	return store.Disk{Before: func(op store.Op) error {
		folder := filepath.Dir(op.Path)
		if filepath.Base(filepath.Dir(folder)) != data.Folder {
			return nil
		}
		// A shard that is there may grow and become whole.
		name := strings.TrimSuffix(filepath.Base(op.Path), filepath.Ext(op.Path))
		entries, err := os.ReadDir(folder)
		here := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), name) })
		if !here && len(entries) >= int(r.shards.Load()) {
			return errors.Join(err, syscall.ENOSPC)
		}
		return err
	}, Free: func(string) (int64, error) { return 0, nil }}
}

// shardsAreRight: each shard in a node's folder is what its name says.
func shardsAreRight(t *testing.T, dir string) {
	t.Helper()
	for _, file := range fetched(t, dir) {
		if b, err := os.ReadFile(file); err != nil || shards.Sum(b).String()+".bin" != filepath.Base(file) {
			t.Errorf("%s is not what its name says: %v", file, err)
		}
	}
}

// A joiner whose disk has no room for its shards trains on nothing, says how much it needs, and trains once there
// is room. Where its window fits, and what comes after it does not, it trains at once, window after window.
func TestShardsOnAFullDisk(t *testing.T) {
	t.Parallel()
	c := manyShards(t, 12, 200_000)
	g := aboutCorpus(1<<40, c.Manifest)
	w := shards.Window{Shards: 2, Steps: 8}
	first := launch(t, Config{window: w, Genesis: g.Encode(), Data: c.Path, Pace: slowPace})
	link := first.link()

	var none roomFor
	none.shards.Store(2)
	waits := launch(t, Config{window: w, Link: link, Pace: slowPace, disk: none.disk()})
	s := waits.until("it says so", func(s status.Snapshot) bool { return len(diskEvents(s)) > 0 && s.Data.Waiting })
	if said := diskEvents(s)[0]; !strings.Contains(said, "the disk is full") || !strings.Contains(said, "free space on the disk of "+waits.cfg.Dir) ||
		!strings.Contains(said, "The shards that the next steps read need up to") || s.Step != 0 {
		t.Errorf("after %d steps it said %q", s.Step, said)
	}
	none.shards.Store(100)
	waits.until("it trains", func(s status.Snapshot) bool { return s.Step > 13 })

	var tight roomFor
	tight.shards.Store(2 + 2) // those that are held out, and a window
	m := launch(t, Config{window: w, Link: link, Pace: slowPace, disk: tight.disk()})
	m.until("it says so", func(s status.Snapshot) bool { return len(diskEvents(s)) > 0 })
	m.until("it trains past its first window", func(s status.Snapshot) bool { return s.Step > 17 })
	for _, m := range []*launched{m, waits, first} {
		m.leave()
		shardsAreRight(t, m.cfg.Dir)
		checkReads(t, c.Manifest, g, w, m.cfg.Dir)
	}
}

// A joiner that is killed while it fetches shards goes on with the parts that it has, and trains on what is right. It is
// killed in the middle, with ATOLL_LONG=1 before its first part and before a shard is whole as well.
func TestKilledWhileItFetches(t *testing.T) {
	t.Parallel()
	const count = 2 + 8 // shards: those that are held out, and two windows
	c := manyShards(t, 8, 150_000)
	g := aboutCorpus(1<<40, c.Manifest)
	peer := launch(t, Config{Genesis: g.Encode(), Data: c.Path, Pace: slowPace})
	link := peer.link()
	parts := filepath.Join(data.Folder, "shards")
	for _, k := range []struct {
		among string
		point int
		rare  bool
	}{{parts, 1, true}, {parts, 8, false}, {".bin", 2, true}} {
		if k.rare && !long {
			continue
		}
		v := victim{t: t, dir: t.TempDir(), link: link, among: k.among}
		killed, _ := v.live(k.point)
		if !strings.Contains(killed, parts) {
			t.Fatalf("killed at %q, which is no shard", killed)
		}
		left, err := os.ReadDir(filepath.Join(v.dir, parts))
		must(t, err)
		if k.point > 1 && len(left) == 0 {
			t.Errorf("killed at %s: nothing is left of what was fetched", killed)
		}
		m := launch(t, Config{Dir: v.dir, Link: link, Pace: slowPace})
		m.until("steps", func(s status.Snapshot) bool { return s.Step > 13 && s.Data.Missing == 0 })
		end := m.leave()
		checkVerify(t, v.dir, end)
		checkReads(t, c.Manifest, g, g.Window(c.Manifest), v.dir)
		shardsAreRight(t, v.dir)
		if n := len(fetched(t, v.dir)); n != count {
			t.Errorf("killed at %s: %d shards, want %d", killed, n, count)
		}
	}
	peer.leave()
}

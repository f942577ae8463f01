package node

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"atoll/node/core"
	"atoll/node/inspect/ledgertest"
	"atoll/node/ledger"
	"atoll/node/replica"
	"atoll/node/status"
	"atoll/node/store"
)

// A folder that lost everything but its key joins again under its old name: it
// hears from its peer what it signed, signs none of it twice, and contributes. The
// peer stands still meanwhile: once it is beyond the window of rounds, there is
// nothing left that the key could sign twice, and no mark to raise.
func TestKeyWithoutItsLedger(t *testing.T) {
	t.Parallel()
	const budget = 24_000
	text := toyText(t)
	first := launch(t, Config{Genesis: toyGenesis(budget).Encode(), Data: text, Pace: slowPace, Stay: true})
	cfg := Config{Dir: t.TempDir(), Link: first.link(), Data: text, Pace: slowPace}
	second := launch(t, cfg)
	second.until("it contributes", contributes)
	self := second.until("a tenth is folded", folded(budget/10)).Self
	first.until("the peer has a part in it", func(s status.Snapshot) bool {
		return slices.ContainsFunc(s.Peers, func(p status.Peer) bool { return p.ID == self && p.TokensFolded > 0 })
	})
	must(t, first.handle().Pace(time.Hour))
	before := second.leave()
	keepOnlyKey(t, cfg.Dir)

	second = launch(t, cfg)
	second.until("a mark is raised", func(s status.Snapshot) bool {
		return slices.ContainsFunc(s.Events, func(e status.Event) bool {
			return e.Kind == "key" && strings.Contains(e.Text, "signs nothing up to")
		})
	})
	must(t, first.handle().Pace(slowPace))
	s := second.until("it contributes again", contributes)
	if s.Self != before.Self || s.Rejoined {
		t.Errorf("came back as %s, rejoined %v; was %s", s.Self, s.Rejoined, before.Self)
	}
	end := second.end()
	first.until("the end", finished)
	last := first.leave()
	if end.StateDigest != last.StateDigest {
		t.Errorf("ends with %.8s and %.8s", end.StateDigest, last.StateDigest)
	}
	s2, err := store.OpenReadOnly(first.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s2.Close()
	if equivocation, err := s2.Equivocation(); err != nil || len(equivocation) > 0 {
		t.Errorf("%d rounds were signed twice, %v", len(equivocation), err)
	}
}

func keepOnlyKey(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "key" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// Only a key that is older than its ledger has to ask.
func TestKeyOnly(t *testing.T) {
	l := ledgertest.New(t).Rounds(2)
	defer l.Close()
	n := newViewer()
	n.ledger = ledger.New(l.Store, l.Plan, l.Genesis.OuterParams(), nil)
	for _, c := range []struct {
		what string
		made bool
		was  replica.Restored
		want bool
		says string
	}{
		{what: "an old key, an empty ledger", want: true},
		{what: "an old key that signed nothing here", was: replica.Restored{Saved: make([]core.Saved, 2)}, want: true},
		{what: "a new key", made: true},
		{what: "the same later", want: false},
		{what: "a new key beside an old ledger", made: true, was: replica.Restored{Saved: make([]core.Saved, 2)}, says: "had no key"},
	} {
		n.keyMade, n.screen = c.made, newViewer().screen
		must(t, n.markNewKey())
		got, err := n.keyOnly(c.was)
		if err != nil || got != c.want {
			t.Errorf("%s: asks %v, %v; want %v", c.what, got, err, c.want)
		}
		if said := fmt.Sprint(n.screen.Events()); c.says != "" && !strings.Contains(said, c.says) {
			t.Errorf("%s: says %s", c.what, said)
		}
	}
}

// A genesis file that is damaged gives way to the one that a founder names.
func TestFounderMendsItsGenesis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, genesisFile), []byte("junk"), 0o600))
	m := launch(t, Config{Dir: dir, Genesis: toyGenesis(1 << 40).Encode(), Data: toyText(t), Pace: slowPace})
	m.until("a step", func(s status.Snapshot) bool { return s.Step > 0 })
	m.leave()
	if raw, err := store.LoadGenesis(dir); err != nil || !bytes.Equal(raw, m.cfg.Genesis) {
		t.Errorf("the folder has %q, %v", raw, err)
	}
}

// A founder whose first start failed later finds that its key has signed nothing, however old the run is by then.
func TestFounderStartsAgain(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	g, dir, text := toyGenesis(1<<40), t.TempDir(), toyText(t)
	g.Outer.CreatedMs = time.Now().Add(-time.Hour).UnixMilli()
	taken := "/ip4/127.0.0.1/tcp/" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	first := launch(t, Config{Dir: dir, Genesis: g.Encode(), Data: text, Listen: []string{taken}})
	if <-first.ended; first.err == nil {
		t.Fatal("it listens where somebody else does")
	}
	again := launch(t, Config{Dir: dir, Genesis: g.Encode(), Data: text, Pace: slowPace})
	s := again.until("a step", func(s status.Snapshot) bool { return s.Step > 0 })
	if hasEvent("key", "older than the ledger")(s) {
		t.Error("it takes its key for an old one")
	}
	again.leave()
}

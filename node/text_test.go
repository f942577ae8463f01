package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atoll/gossip/p2p"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/trainer/corpus"
)

// otherText is a corpus that no test's run is about.
func otherText(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("pack my box with five dozen liquor jugs. ", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// aboutText is a run that trains on a text.
func aboutText(t *testing.T, budget uint64, path string) genesis.Genesis {
	t.Helper()
	text, err := corpus.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	g := toyGenesis(budget)
	g.Data = genesis.Data{Name: text.Name(), SHA256: text.SHA256()}
	return g
}

// A learner with another text ends before it trains or fetches the model, and before it takes the one use of its invite. With the run's
// text it goes on in the same folder, and needs no --data after a restart.
func TestJoinerTrainsOnTheRunsText(t *testing.T) {
	t.Parallel()
	text, dir := toyText(t), t.TempDir()
	g, owner := ownedGenesis(1 << 40)
	g.Data = aboutText(t, 0, text).Data
	pass, err := NewInvite(owner, g.RunID(), 1, 0)
	must(t, err)
	first := launch(t, Config{Genesis: g.Encode(), Owner: owner, Invite: &pass, Data: text, Pace: slowPace})
	link := first.link()
	for path, want := range map[string]string{"": "without --data this node would train on", otherText(t): `: /`} {
		tried := t.TempDir()
		m := launch(t, Config{Dir: tried, Link: link, Data: path})
		<-m.ended
		if m.err == nil || !strings.Contains(m.err.Error(), `another text than the run, which trains on "text.txt"`) || !strings.Contains(m.err.Error(), want) {
			t.Errorf("--data %q: %v", path, m.err)
		}
		if raw, err := store.LoadGenesis(tried); err == nil {
			t.Errorf("the folder has the genesis, %d bytes: it looks like that of a node", len(raw))
		}
		if m.last.Step != 0 || m.last.Net.ReceivedBytes > 1<<14 {
			t.Errorf("--data %q: %d steps, %d bytes received", path, m.last.Step, m.last.Net.ReceivedBytes)
		}
	}
	launch(t, Config{Dir: dir, Link: link, Data: text, Pace: slowPace}).joinAndLeave()
	if path, err := store.LoadText(dir); err != nil || path != text {
		t.Errorf("the folder remembers %q, %v", path, err)
	}
	launch(t, Config{Dir: dir, Pace: slowPace}).joinAndLeave()
	first.leave()
}

// A newcomer that looked, and finds when it is to take part that another took the last use of the invite, ends and trains nothing.
func TestKeptOutAtTheDoor(t *testing.T) {
	t.Parallel()
	text := toyText(t)
	g, owner := ownedGenesis(1 << 40)
	pass, err := NewInvite(owner, g.RunID(), 1, 0)
	must(t, err)
	first := launch(t, Config{Genesis: g.Encode(), Owner: owner, Invite: &pass, Data: text, Pace: slowPace})
	link := first.link()
	var sooner sync.Once
	err = fails(t, Config{Link: link, Data: text, Pace: slowPace, AloneAfter: time.Second, disk: store.Disk{Before: func(op store.Op) error {
		if strings.Contains(op.Path, "genesis") {
			sooner.Do(func() { launch(t, Config{Link: link, Data: text, Pace: slowPace}).joinAndLeave() })
		}
		return nil
	}}})
	if !errors.Is(err, p2p.ErrNotAdmitted) || strings.Contains(err.Error(), "took no use") {
		t.Errorf("it ends with %v", err)
	}
	first.leave()
}

func (m *launched) joinAndLeave() {
	m.t.Helper()
	m.until("a step", func(s status.Snapshot) bool { return s.Step > 0 })
	m.leave()
}

// hasEvent looks for news of a kind.
func hasEvent(kind, text string) func(status.Snapshot) bool {
	return func(s status.Snapshot) bool {
		for _, e := range s.Events {
			if e.Kind == kind && strings.Contains(e.Text, text) {
				return true
			}
		}
		return false
	}
}

// A run that names no text takes any, and says so. An observer who was told of no text measures none.
func TestTextsThatAreOnlyMentioned(t *testing.T) {
	t.Parallel()
	text := toyText(t)
	for _, cfg := range []Config{
		{Genesis: toyGenesis(1 << 40).Encode(), Data: text, Pace: slowPace},
		{Genesis: toyGenesis(1 << 40).Encode(), Pace: slowPace},
	} {
		m := launch(t, cfg)
		m.until("the text", hasEvent("text", "the run does not say which text to train on"))
		m.leave()
	}
	m := launch(t, Config{Genesis: aboutText(t, 1<<40, text).Encode(), Observe: true, EvalBytes: 100})
	m.until("no evaluation", hasEvent("no evaluation", "without --data"))
	m.leave()
	told := Config{Genesis: aboutText(t, 1<<40, text).Encode(), Observe: true, EvalBytes: 100, Data: otherText(t)}
	if err := fails(t, told); !strings.Contains(err.Error(), "another text than the run") {
		t.Errorf("an observer with another text: %v", err)
	}
}

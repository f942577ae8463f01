package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/status"
)

// speech is a heartbeat of another process, heard at a time.
type speech struct {
	at     core.Time
	began  int64
	folded uint64
	state  wire.State
}

func TestKeyWatch(t *testing.T) {
	const self, period, known = 50_000, 2000, 700
	living := func(began int64, state wire.State) (s []speech) {
		for i := range 10 {
			s = append(s, speech{core.Time(1000 + i*period), began, uint64(known - 3 + i), state})
		}
		return s
	}
	for _, c := range []struct {
		name  string
		in    bool // this process has listened already
		hears []speech
		lives bool
		ends  bool
	}{
		{"an older one is at work", false, living(20_000, wire.Training), true, true},
		{"one is at work whose clock is ahead", false, living(90_000, wire.Training), true, true},
		{"two listen: the later ends", false, living(20_000, wire.Joining), true, true},
		{"two listen: the older stays", false, living(90_000, wire.Joining), false, false},
		{"at work, a later one comes", true, living(90_000, wire.Training), true, false},
		{"at work, an older one shows up", true, living(20_000, wire.Training), true, true},
		{"at work, one listens", true, living(90_000, wire.Joining), false, false},
		{"it leaves", true, living(20_000, wire.Leaving), false, false},
		{"echoes of the process before, ahead of what this one has yet", false, []speech{
			{100, 20_000, known, wire.Training}, {1200, 20_000, known, wire.Training}, {5000, 20_000, known + 50, wire.Training},
		}, false, false},
		{"heartbeats of the process before, by way of a peer that slept", true, []speech{
			{40_000, 20_000, known - 20, wire.Training}, {40_001, 20_000, known - 10, wire.Training}, {40_002, 20_000, known, wire.Training},
		}, false, false},
		{"recorded heartbeats of two earlier ones in turn", true, []speech{
			{40_000, 20_000, known - 20, wire.Training}, {41_000, 10_000, 5, wire.Training}, {42_000, 20_000, known, wire.Training},
		}, false, false},
	} {
		w := keyWatch{self: self, in: c.in}
		lives := false
		for _, s := range c.hears {
			w.follow(s.at, known, true)
			lives = w.heartbeat(s.at, wire.Heartbeat{Incarnation: s.began, Folded: s.folded, State: s.state}) || lives
		}
		if lives != c.lives || lives && w.ends() != c.ends {
			t.Errorf("%s: lives %v, ends %v; want %v, %v", c.name, lives, w.ends(), c.lives, c.ends)
		}
	}
}

// What the run folded before this process caught up with it proves nothing,
// however long catching up takes.
func TestKeyWatchCatchesUp(t *testing.T) {
	earlier := wire.Heartbeat{Incarnation: 20_000, Folded: 900, State: wire.Training}
	w := keyWatch{self: 50_000, in: true}
	w.follow(20_000, 700, false)
	if w.heartbeat(20_000, earlier) {
		t.Error("a heartbeat from before the start ends a process that is behind the run")
	}
	w.follow(30_000, 950, true)
	w.follow(31_000, 990, true)
	if w.heartbeat(31_000, earlier) {
		t.Error("a heartbeat from before the start ends a process")
	}
	if w.heartbeat(31_000, wire.Heartbeat{Incarnation: 20_000, Folded: 951, State: wire.Training}); w.known != 950 {
		t.Errorf("takes %d tokens for those at the start, want 950", w.known)
	}
}

// A lone restart is slowed by two heartbeat periods at most, and one that hears
// somebody with its key signs nothing before that is settled.
func TestKeyWatchListens(t *testing.T) {
	const period = 2000
	var alone keyWatch
	if !alone.listen(100, period) {
		t.Error("listens to nobody")
	}
	if alone.peerUp(200); !alone.listen(300, period) {
		t.Error("listens again")
	}
	var w keyWatch
	w.peerUp(1000)
	w.peerUp(4000) // a second peer changes nothing
	if w.listen(4999, period) || !w.listen(5000, period) {
		t.Error("does not listen for two periods")
	}
	w = keyWatch{self: 50_000}
	w.peerUp(1000)
	for at := core.Time(1500); at < echoMs+period; at += period {
		w.heartbeat(at, wire.Heartbeat{Incarnation: 20_000, Seq: uint64(at), State: wire.Training})
		if w.listen(at+period, period) {
			t.Errorf("trains at %d beside a process with its key", at)
		}
	}
}

// A peer that plays recorded heartbeats without end keeps nobody from training.
func TestKeyWatchListensNotForEver(t *testing.T) {
	const period = 2000
	w := keyWatch{self: 50_000}
	w.peerUp(1000)
	began := core.Time(2000)
	w.listen(began, period)
	for at := began; at < began+listenMaxMs; at += period / 2 {
		w.heartbeat(at, wire.Heartbeat{Incarnation: 20_000 + int64(at)%2, State: wire.Training})
	}
	if !w.listen(began+listenMaxMs, period) {
		t.Error("listens to recorded heartbeats for ever")
	}
}

func TestRefusedAsDuplicate(t *testing.T) {
	named, given, met := peerAddr(1, "/ip4/192.0.2.1/tcp/1"), peerAddr(2, "/ip4/192.0.2.2/tcp/1"), peerAddr(3, "/ip4/192.0.2.3/tcp/1")
	refusal := fmt.Errorf("dial: %w: %w", p2p.ErrRefusedByPeer, p2p.ErrDuplicateKey)
	// A start without the link dials whom an earlier one met, and any start whoever gave the genesis.
	n := &node{cfg: Config{Peers: []string{given}}, knownPeers: knownPeers{named: peerIDs([]string{named})}}
	n.remain([]string{named, met})
	refused := func(addr string, err error) { n.refusedAsDuplicate(peerIDs([]string{addr})[0], addr, err) }
	refused(met, refusal)
	refused(named, p2p.ErrRefusedByPeer)
	if n.fatal != nil {
		t.Errorf("ends as a stranger says so, or for another reason: %v", n.fatal)
	}
	for _, addr := range []string{named, given} {
		n.fatal = nil
		refused(addr, refusal)
		if !errors.Is(n.fatal, ErrDuplicateKey) || errors.Is(n.fatal, p2p.ErrRefusedByPeer) || !strings.Contains(n.fatal.Error(), "without its key file") {
			t.Errorf("error %v", n.fatal)
		}
	}
}

// A folder with a copy of the key is refused before it signs anything, and the
// first process goes on.
func TestCopiedKeyEndsBeforeItSigns(t *testing.T) {
	t.Parallel()
	text := toyText(t)
	hub := launch(t, Config{Genesis: toyGenesis(1 << 40).Encode(), Data: text, Pace: slowPace})
	link := hub.link()
	first := launch(t, Config{Link: link, Data: text, Pace: slowPace})
	first.until("it contributes", contributes)
	key, err := os.ReadFile(filepath.Join(first.cfg.Dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := os.WriteFile(filepath.Join(copied, "key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, Config{Dir: copied, Link: link, Data: text, Pace: slowPace}); !errors.Is(err, ErrDuplicateKey) {
		t.Errorf("a copy of the key: %v", err)
	}
	now := first.until("its next status", func(status.Snapshot) bool { return true })
	first.until("it goes on", func(s status.Snapshot) bool { return s.TokensFolded > now.TokensFolded })
	first.leave()
	hub.leave()
}

package node

import (
	"encoding/hex"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/node/joinlink"
	"atoll/node/status"
	"atoll/node/store"
)

// slowPace makes a run of three last for some ten seconds.
const slowPace = 30 * time.Millisecond

// A run in which one joins in the middle, one leaves and one only watches.
func TestJoinLeaveObserve(t *testing.T) {
	t.Parallel()
	const budget = 24_000
	text := toyText(t)
	first := launch(t, Config{Genesis: toyGenesis(budget).Encode(), Data: text, Pace: slowPace, Stay: true, Trace: true})
	link := first.link()
	leaver := launch(t, Config{Link: link, Data: text, Pace: slowPace, Trace: true})
	observer := launch(t, Config{Link: link, Observe: true})
	leaver.until("it contributes", contributes)
	first.until("a tenth is folded", folded(budget/10))
	joiner := launch(t, Config{Link: link, Data: text, Pace: slowPace})
	joiner.until("it contributes", contributes)
	left := leaver.leave()
	ends := []status.Snapshot{joiner.end(), observer.end(), first.until("the end", finished)}

	for i, s := range ends {
		if !s.Finished || s.ChainDigest != ends[0].ChainDigest || s.StateDigest != ends[0].StateDigest {
			t.Errorf("node %d: finished %v, chain %.8s state %.8s, want %.8s %.8s", i, s.Finished, s.ChainDigest, s.StateDigest, ends[0].ChainDigest, ends[0].StateDigest)
		}
	}
	if o := ends[1]; o.TokensTrained != 0 || o.Role != hello.Observer {
		t.Errorf("observer trained %d tokens as %s", o.TokensTrained, o.Role)
	}
	checkModel(t, first)
	last := first.leave()
	view := checkLedger(t, first.cfg.Dir, last)
	checkTrace(t, view, first.cfg.Dir, leaver.cfg.Dir)
	checkNothingLost(t, leaver.cfg.Dir, left)
	checkNothingLost(t, first.cfg.Dir, last)
	checkNothingLost(t, joiner.cfg.Dir, ends[0])
	for _, m := range []*launched{first, joiner, observer} {
		checkVerify(t, m.cfg.Dir, ends[0])
	}
	checkFlippedByte(t, first.cfg.Dir, view)
}

// checkModel: a running and a stopped node have the same model.
func checkModel(t *testing.T, m *launched) {
	t.Helper()
	g, running, tokens, err := inspect.LoadModel(t.Context(), m.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	m.leave()
	g2, stopped, tokens2, err := inspect.LoadModel(t.Context(), m.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, g2) || tokens != tokens2 || tokens < g.Outer.Budget {
		t.Errorf("running %d tokens, stopped %d, budget %d", tokens, tokens2, g.Outer.Budget)
	}
	for i, x := range running.Data {
		if stopped.Data[i] != x {
			t.Fatalf("value %d is %v in the running node, %v in the stopped one", i, x, stopped.Data[i])
		}
	}
}

// checkLedger: the ledger of a stopped node adds up to its last status.
func checkLedger(t *testing.T, dir string, last status.Snapshot) inspect.LedgerView {
	t.Helper()
	view, err := inspect.Ledger(dir)
	if err != nil {
		t.Fatal(err)
	}
	if uint64(view.TokensFolded) != last.TokensFolded || view.TokensTrained != last.TokensTrained {
		t.Errorf("ledger: %v folded, %d trained; status: %d, %d", view.TokensFolded, view.TokensTrained, last.TokensFolded, last.TokensTrained)
	}
	slots := map[[3]any]bool{}
	folded := make([]uint64, len(view.Fragments)) // tokens of the folded deltas, counted or not
	for _, d := range view.Deltas {
		slot := [3]any{d.Author, d.Fragment, d.Round}
		if slots[slot] {
			t.Errorf("%s signed fragment %d round %d twice", d.Author, d.Fragment, d.Round)
		}
		slots[slot] = true
		if d.Folded {
			folded[d.Fragment] += d.Tokens
		}
	}
	var params, recorded, made, counted, beyond float64
	for p, f := range view.Fragments {
		if f.Tokens > folded[p] || f.Unknown != 0 {
			t.Errorf("fragment %d: %d tokens recorded, %d in its deltas, %d unknown", p, f.Tokens, folded[p], f.Unknown)
		}
		params += float64(f.Params)
		recorded += float64(f.Params) * float64(f.Tokens)
		made += float64(f.Params) * float64(folded[p])
	}
	for _, a := range view.Authors {
		counted += a.Tokens
		beyond += a.Beyond
	}
	// An honest learner that was late can have made more than counts. Authors have whole tokens: each is wrong by half of one.
	if slack := float64(len(view.Authors)); math.Abs(counted-recorded/params) > slack || math.Abs(beyond-(made-recorded)/params) > slack {
		t.Errorf("authors have %.0f tokens that count and %.0f that do not, the records say %.1f of %.1f", counted, beyond, recorded/params, made/params)
	}
	return view
}

// checkNothingLost: by its own ledger, every step of a node is in a delta, or it
// said that it is not.
func checkNothingLost(t *testing.T, dir string, s status.Snapshot) {
	t.Helper()
	view, err := inspect.Ledger(dir)
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]uint64, len(view.Fragments))
	for _, d := range view.Deltas {
		if d.Author == s.Self {
			tokens[d.Fragment] += d.Tokens
		}
	}
	for p, n := range tokens {
		rest, lost := s.Account.OwnUnpublished[p], s.Account.OwnLostHere[p]
		if n+rest+lost != s.TokensTrained || lost > 0 && !happened("steps lost")(s) {
			t.Errorf("node %.8s trained %d tokens; fragment %d has %d in deltas, %d unpublished and %d lost: %v", s.Self, s.TokensTrained, p, n, rest, lost, s.Events)
		}
	}
}

func checkVerify(t *testing.T, dir string, end status.Snapshot) {
	t.Helper()
	v, err := inspect.Verify(t.Context(), dir)
	if err != nil {
		t.Error(err)
		return
	}
	if got := hex.EncodeToString(v.Chain[:]); got != end.ChainDigest {
		t.Errorf("%s: chain %s by replay, %s by status", dir, got, end.ChainDigest)
	}
	if got := hex.EncodeToString(v.State[:]); got != end.StateDigest {
		t.Errorf("%s: state %s by replay, %s by status", dir, got, end.StateDigest)
	}
}

func checkFlippedByte(t *testing.T, dir string, view inspect.LedgerView) {
	t.Helper()
	for _, d := range view.Deltas {
		if !d.Folded || !d.Held {
			continue
		}
		found, err := filepath.Glob(filepath.Join(dir, "deltas", "*", "*", d.ID))
		if err != nil || len(found) != 1 {
			t.Fatalf("payload at %v, %v", found, err)
		}
		path := found[0]
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)-1] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := inspect.Verify(t.Context(), dir); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), d.ID[:8]) {
			t.Errorf("flipped byte: %v, want the name of delta %s", err, d.ID)
		}
		return
	}
	t.Error("no folded delta is held")
}

// A node that is stopped and started again goes on where it was, at the address
// where it was, and finds its peers without the link.
func TestRestart(t *testing.T) {
	t.Parallel()
	const budget = 20_000
	text := toyText(t)
	first := launch(t, Config{Genesis: toyGenesis(budget).Encode(), Data: text, Pace: slowPace, Stay: true})
	link := first.link()
	cfg := Config{Dir: t.TempDir(), Link: link, Data: text, Pace: slowPace}
	second := launch(t, cfg)
	second.until("it contributes", contributes)
	second.until("a tenth is folded", folded(budget/10))
	before := second.leave()

	cfg.Link = joinlink.Link{}
	second = launch(t, cfg)
	s := second.until("its first status", func(status.Snapshot) bool { return true })
	if s.Link != before.Link {
		t.Errorf("restarted at %s, was at %s", s.Link, before.Link)
	}
	if !s.Rejoined || s.Self != before.Self || s.TokensTrained < before.TokensTrained || s.TokensFolded < before.TokensFolded {
		t.Errorf("restarted: rejoined %v, %d trained, %d folded; before %d, %d", s.Rejoined, s.TokensTrained, s.TokensFolded, before.TokensTrained, before.TokensFolded)
	}
	stages := map[string]bool{}
	second.until("it contributes again", func(s status.Snapshot) bool { stages[s.Stage] = true; return contributes(s) })
	for stage := range stages {
		if strings.Contains(stage, "snapshot") || strings.Contains(stage, "installing") {
			t.Errorf("restarted node took a snapshot from a peer: %q", stage)
		}
	}
	// A node that was restarted can give a newcomer a snapshot.
	observer := launch(t, Config{Link: second.link(), Observe: true})
	observer.until("it is in", func(s status.Snapshot) bool { return s.State == wire.Observing.String() })
	end := second.end()
	if o := observer.end(); o.StateDigest != end.StateDigest || o.ChainDigest != end.ChainDigest {
		t.Errorf("newcomer ends with %.8s %.8s", o.ChainDigest, o.StateDigest)
	}
	all := first.until("the end", finished)
	if !end.Finished || end.StateDigest != all.StateDigest || end.ChainDigest != all.ChainDigest {
		t.Errorf("ends: %v %.8s %.8s and %.8s %.8s", end.Finished, end.ChainDigest, end.StateDigest, all.ChainDigest, all.StateDigest)
	}
	if end.TokensTrained <= before.TokensTrained {
		t.Errorf("trained %d tokens in all, %d before the restart", end.TokensTrained, before.TokensTrained)
	}
	last := first.leave()
	checkLedger(t, first.cfg.Dir, last)
	checkNothingLost(t, cfg.Dir, end)
	checkVerify(t, cfg.Dir, end)
}

// A finished node's folder can be started again: it still serves the model.
func TestRestartAfterTheEnd(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir(), Genesis: toyGenesis(2_000).Encode(), Data: toyText(t)}
	before := launch(t, cfg).end()
	cfg.Genesis = nil
	after := launch(t, cfg).end()
	if len(before.History) == 0 || len(after.History) == 0 || after.History[0] != before.History[0] {
		t.Errorf("the history has %d points, before the restart it had %d: want it to go on", len(after.History), len(before.History))
	}
	if !after.Finished || !after.Rejoined || after.StateDigest != before.StateDigest || after.TokensTrained != before.TokensTrained {
		t.Errorf("before %v %.8s %d, after %v %v %.8s %d", before.Finished, before.StateDigest, before.TokensTrained, after.Finished, after.Rejoined, after.StateDigest, after.TokensTrained)
	}
}

func TestOneNodePerFolder(t *testing.T) {
	t.Parallel()
	cfg := Config{Dir: t.TempDir(), Genesis: toyGenesis(1 << 40).Encode(), Data: toyText(t), Pace: slowPace}
	m := launch(t, cfg)
	m.link()
	if err := fails(t, cfg); !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), cfg.Dir) {
		t.Errorf("second node: %v", err)
	}
	if client, err := status.Dial(cfg.Dir); err != nil {
		t.Error(err)
	} else if err := client.Leave(t.Context()); err != nil {
		t.Errorf("the first node no longer answers: %v", err)
	}
	if s := m.end(); s.Finished || s.TokensTrained == 0 {
		t.Errorf("left: %+v", s)
	}
}

func TestWrongRun(t *testing.T) {
	t.Parallel()
	m := launch(t, Config{Genesis: toyGenesis(1 << 40).Encode(), Data: toyText(t), Pace: slowPace})
	link := m.link()
	link.Run[0] ^= 1
	err := fails(t, Config{Link: link, Observe: true, JoinWithin: longestWait})
	if refusal := (*hello.Refusal)(nil); !errors.As(err, &refusal) || refusal.Field != hello.FieldRun {
		t.Errorf("error %v, want a refusal of the run", err)
	}
	other := toyGenesis(1 << 30)
	err = fails(t, Config{Link: link, Genesis: other.Encode(), Observe: true})
	if !strings.Contains(err.Error(), "use another folder") {
		t.Errorf("genesis of one run, link of another: %v", err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	link := joinlink.Link{Run: toyGenesis(1000).RunID(), Peers: []string{peerAddr(1, "/ip4/127.0.0.1/tcp/1")}}
	err := fails(t, Config{Link: link, Observe: true, JoinWithin: 2 * time.Second})
	if !errors.Is(err, ErrNoPeers) || !strings.Contains(err.Error(), link.Peers[0]) {
		t.Errorf("error %v", err)
	}
	err = fails(t, Config{Link: joinlink.Link{Run: link.Run}, Observe: true})
	if !strings.Contains(err.Error(), "--peer ADDR") {
		t.Errorf("no address at all: %v", err)
	}
	m := launch(t, Config{Link: link, Observe: true})
	if s := m.leave(); s.State != "joining" {
		t.Errorf("left while dialling: %+v", s)
	}
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(t.TempDir(), "short.txt")
	if err := os.WriteFile(short, []byte("too short"), 0o600); err != nil {
		t.Fatal(err)
	}
	encoded, text := toyGenesis(1000).Encode(), toyText(t)
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"port in use", Config{Genesis: encoded, Data: text, Listen: []string{"/ip4/127.0.0.1/tcp/" + port}}, "port in use"},
		{"bad address", Config{Genesis: encoded, Data: text, Listen: []string{"localhost:80"}}, "want something like /ip4/"},
		{"short data", Config{Genesis: encoded, Data: short}, "pass at least"},
		{"no data", Config{Genesis: encoded, Data: short + ".absent"}, "no such file"},
		{"bad peer", Config{Genesis: encoded, Data: text, Peers: []string{"/ip4/127.0.0.1/tcp/80"}}, "ends in /p2p/ID"},
		{"bad genesis", Config{Genesis: encoded[1:], Data: text}, "genesis"},
		{"large batch", Config{Genesis: encoded, Data: text, Batch: genesis.MaxBatch + 1}, "Batch is 4097"},
		{"batch beyond the run's", Config{Genesis: encoded, Data: text, Batch: 129}, "at most 128 rows a step"},
		{"negative pace", Config{Genesis: encoded, Data: text, Pace: -1}, "Pace is -1ns"},
	} {
		if err := fails(t, c.cfg); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

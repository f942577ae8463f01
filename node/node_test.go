package node

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"atoll/node/genesis"
	"atoll/node/inspect/ledgertest"
	"atoll/node/status"
	"atoll/node/store"
)

// toyGenesis is a run that a test can afford.
func toyGenesis(budget uint64) genesis.Genesis { return ledgertest.Genesis(budget) }

// toyText is a corpus for it.
func toyText(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 200)), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// The nodes step slowly until all are in: on a busy machine the first could else be
// through with the whole run before the others have started.
func TestThreeNodesTrainOneModel(t *testing.T) {
	t.Parallel()
	text := toyText(t)
	first := launch(t, Config{Genesis: toyGenesis(20_000).Encode(), Data: text, Pace: time.Second})
	link := first.link()
	members := []*launched{first}
	for range 2 {
		members = append(members, launch(t, Config{Link: link, Data: text, Pace: time.Second}))
	}
	for _, m := range members[1:] {
		m.until("it trains", func(s status.Snapshot) bool { return s.TokensTrained > 0 })
	}
	for _, m := range members {
		must(t, m.handle().Pace(5*time.Millisecond))
	}
	want := first.end()
	for i, m := range members {
		s := m.end()
		if !s.Finished || s.StateDigest != want.StateDigest || s.ChainDigest != want.ChainDigest {
			t.Errorf("node %d: finished %v, state %.8s chain %.8s; node 0 has %.8s %.8s", i, s.Finished, s.StateDigest, s.ChainDigest, want.StateDigest, want.ChainDigest)
		}
		if s.TokensTrained == 0 {
			t.Errorf("node %d trained nothing", i)
		}
		if s.Time.Waiting > 0.1*s.Time.Total { // the rest of the account: a busy machine's scheduler is in it
			t.Errorf("node %d waited %v of %v s on peers", i, s.Time.Waiting, s.Time.Total)
		}
	}
}

// A node that has finished the run while another one joins stays until that one
// has the end too. Then nothing is left to train.
func TestLateNodeTakesTheEnd(t *testing.T) {
	t.Parallel()
	text := toyText(t)
	first := launch(t, Config{Genesis: toyGenesis(4_000).Encode(), Data: text, Pace: slowPace})
	first.until("it has something to give", folded(1000))
	must(t, first.handle().Pace(time.Hour))

	fetching, over := make(chan struct{}), make(chan struct{})
	begun, goOn := sync.OnceFunc(func() { close(fetching) }), sync.OnceFunc(func() { close(over) })
	late := launch(t, Config{Link: first.link(), Data: text, Pace: slowPace, disk: store.Disk{Before: func(op store.Op) error {
		if strings.Contains(op.Path, "chunks") {
			begun()
			<-over
		}
		return nil
	}}})
	t.Cleanup(goOn)
	<-fetching
	must(t, first.handle().Pace(slowPace))
	first.until("the run is over", finished)
	goOn()
	want, got := first.end(), late.end()
	if !got.Finished || got.StateDigest != want.StateDigest || got.ChainDigest != want.ChainDigest {
		t.Errorf("finished %v, state %.8s chain %.8s; the first has %.8s %.8s", got.Finished, got.StateDigest, got.ChainDigest, want.StateDigest, want.ChainDigest)
	}
}

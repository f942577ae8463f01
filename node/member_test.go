package node

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"atoll/node/joinlink"
	"atoll/node/mailbox"
	"atoll/node/status"
)

// long is whether tests try all that they can, and not a sample.
var long = os.Getenv("ATOLL_LONG") != ""

// longestWait bounds every wait of a test for a whole node. Only a failure comes
// near it.
const longestWait = 4 * time.Minute

// calm lets nodes that many others share a machine with, and the race detector, end in order.
const calm = 9

// measure spares each node of a test the half second in which others measure how fast they train.
const measure = time.Millisecond

// launched is a whole node under test, in this process.
type launched struct {
	t     *testing.T
	cfg   Config
	stop  context.CancelFunc // an ordered leave
	news  *mailbox.Mailbox[status.Snapshot]
	began chan Handle
	ended chan struct{} // closed at the end; then last and err are set
	last  status.Snapshot
	err   error
}

// launch runs a node of the toy run until the test ends.
func launch(t *testing.T, cfg Config) *launched {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	cfg.Profile, cfg.Threads, cfg.calm, cfg.measure = "local", 1, calm, measure
	if cfg.Batch == 0 {
		cfg.Batch = 2
	}
	if cfg.heartbeatMs == 0 {
		cfg.heartbeatMs = 100
	}
	if os.Getenv("ATOLL_TEST_LOG") != "" {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("node", filepath.Base(cfg.Dir))
	}
	m := &launched{t: t, news: mailbox.New[status.Snapshot](), began: make(chan Handle, 1), ended: make(chan struct{})}
	cfg.OnStatus = m.news.Put
	cfg.Started = func(h Handle) error { m.began <- h; return nil }
	m.cfg = cfg
	ctx, cancel := context.WithTimeout(context.Background(), longestWait)
	m.stop = cancel
	go func() {
		defer close(m.ended)
		m.last, m.err = Run(ctx, cfg)
	}()
	t.Cleanup(func() { cancel(); <-m.ended })
	return m
}

// handle is what may be done to the node, once it has started.
func (m *launched) handle() Handle {
	m.t.Helper()
	select {
	case h := <-m.began:
		m.began <- h
		return h
	case <-m.ended:
		m.t.Fatalf("the node ended (%v) before it had started", m.err)
		return Handle{}
	}
}

// until waits for a status that a test wants to see.
func (m *launched) until(what string, seen func(status.Snapshot) bool) status.Snapshot {
	m.t.Helper()
	var s status.Snapshot
	for {
		select {
		case <-m.ended:
			m.t.Fatalf("node ended (%v) before: %s; last status %+v", m.err, what, s)
		case <-m.news.Ready():
		}
		for _, s = range m.news.Take() {
			if seen(s) {
				return s
			}
		}
	}
}

// link waits until the node runs and returns its join link.
func (m *launched) link() joinlink.Link {
	m.t.Helper()
	l, err := joinlink.Parse(m.until("its link", func(s status.Snapshot) bool { return s.Link != "" }).Link)
	if err != nil {
		m.t.Fatal(err)
	}
	return l
}

// end waits for the end, which must be a good one.
func (m *launched) end() status.Snapshot {
	m.t.Helper()
	<-m.ended
	if m.err != nil {
		m.t.Fatalf("node on %s: %v", m.cfg.Dir, m.err)
	}
	return m.last
}

// leave is an ordered leave.
func (m *launched) leave() status.Snapshot {
	m.t.Helper()
	m.stop()
	return m.end()
}

// fails runs a node that is expected to end with an error by itself.
func fails(t *testing.T, cfg Config) error {
	t.Helper()
	m := launch(t, cfg)
	<-m.ended
	if m.err == nil {
		t.Fatalf("the node ended without an error")
	}
	return m.err
}

func finished(s status.Snapshot) bool { return s.Finished }

func folded(tokens uint64) func(status.Snapshot) bool {
	return func(s status.Snapshot) bool { return s.TokensFolded >= tokens }
}

func contributes(s status.Snapshot) bool { return s.JoinS > 0 }

package testnet

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"atoll/gossip/wire"
	"atoll/node"
)

// What the nodes of a world are told.
const (
	listenLocal  = "/ip4/127.0.0.1/tcp/0" // a free port that only this machine reaches
	localProfile = "local"
	liveBytes    = 16 << 10 // held-out bytes that node 0 evaluates live: the nodes share the cores, and a new value every few seconds is worth more than its third digit
	threads      = 1        // a learner is a slow machine here; the cores are shared
)

// startNode starts the next node. The first one begins the run from the genesis
// document; the others join it by link.
func (w *world) startNode(waitForLink bool) error {
	m := &member{index: len(w.members), planned: w.began}
	m.dir, m.divisor = w.path(nodeName(m.index)), w.cfg.divisor(m.index)
	if m.joiner = m.index >= w.cfg.Nodes; m.joiner {
		m.planned = time.Now()
	}
	w.members = append(w.members, m)
	if err := w.spawn(m); err != nil {
		return err
	}
	if waitForLink {
		w.screen.say("%s is up, waiting for its address", m.name())
	}
	return nil
}

// spawn starts a process for a node, its first or another.
func (w *world) spawn(m *member) error {
	if err := m.start(w.cfg.Binary, w.arguments(m), w.exits); err != nil {
		return err
	}
	w.running++
	return nil
}

// arguments are the command line of a node.
func (w *world) arguments(m *member) []string {
	args := []string{
		"join", "--dir", m.dir, "--listen", listenLocal, "--profile", localProfile,
		"--data", w.cfg.Data, "--threads", strconv.Itoa(threads), "--batch", strconv.Itoa(w.genesis.Batch),
		"--pace", w.calibration.pace(m.divisor).String(), "--log-level", "info",
	}
	evaluated := 0
	if m.index == 0 {
		evaluated = liveBytes
	}
	args = append(args, "--eval-bytes", strconv.Itoa(evaluated))
	if m.index == 0 && len(m.lives) == 0 {
		args = append(args, "--genesis", w.path(genesisFile))
	}
	if w.link != "" {
		args = append(args, w.link)
	}
	return args
}

// startOthers starts the rest of the first nodes when the first one can be
// reached.
func (w *world) startOthers() error {
	if len(w.members) != 1 || !w.members[0].newest().seen {
		return nil
	}
	if err := w.writeLink(); err != nil {
		return err
	}
	for len(w.members) < w.cfg.Nodes {
		if err := w.startNode(false); err != nil {
			return err
		}
	}
	return nil
}

// pollTimeout is how long a node may take to say how it is: a paused one never
// does.
const pollTimeout = 400 * time.Millisecond

// poll asks every running node for its status, all at once.
func (w *world) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, m := range w.members {
		l := m.current()
		if l == nil {
			continue
		}
		wg.Go(func() {
			if s, err := l.snapshot(ctx, m.dir); err == nil {
				l.last, l.seen = s, true
			}
		})
	}
	wg.Wait()
}

// maxLinkPeers is how many nodes the link names: one that is still there is
// enough to get in.
const maxLinkPeers = 4

// writeLink writes the join link of the nodes that are up whenever it changes.
func (w *world) writeLink() error {
	link, err := w.currentLink()
	if err != nil || link == "" || link == w.link {
		return err
	}
	w.link = link
	if err := os.WriteFile(w.path(linkFile), []byte(link+"\n"), 0o644); err != nil {
		return fmt.Errorf("write join link: %w", err)
	}
	return nil
}

func (w *world) currentLink() (string, error) {
	link := node.Link{Run: wire.RunID(w.genesis.RunID())}
	for _, m := range w.members {
		l := m.current()
		if l == nil || !l.seen || l.asked || len(link.Peers) == maxLinkPeers {
			continue
		}
		own, err := node.ParseLink(l.last.Link)
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.name(), err)
		}
		if len(own.Peers) > 0 {
			link.Peers = append(link.Peers, own.Peers[0])
		}
	}
	if len(link.Peers) == 0 {
		return "", nil
	}
	return link.String(), nil
}

// folded is the share of the budget that is folded, in percent, as far as any
// node knows.
func (w *world) folded() float64 {
	var most uint64
	for _, m := range w.members {
		for _, l := range m.lives {
			most = max(most, l.last.TokensFolded)
		}
	}
	return 100 * float64(most) / float64(w.genesis.Outer.Budget)
}

// finished says whether a node has seen the end of the run: what chaos does now
// would not be part of it.
func (w *world) finished() bool {
	for _, m := range w.members {
		if l := m.newest(); l != nil && l.last.Finished {
			return true
		}
	}
	return false
}

// doChaos does the events whose moment has come. One whose node is not in a
// state for it, such as a start while the killed process is still dying, comes
// up again.
func (w *world) doChaos(now time.Time) error {
	if w.link == "" || len(w.members) < w.cfg.Nodes || w.finished() {
		return nil
	}
	for i := range w.chaos {
		s := &w.chaos[i]
		if s.done || !s.At.reached(now.Sub(w.began), w.folded()) {
			continue
		}
		if err := w.do(s); err != nil {
			return fmt.Errorf("chaos %q: %w", s.Event, err)
		}
	}
	return nil
}

// do does one event, if it can be done now.
func (w *world) do(e *scheduled) error {
	if e.Verb == Join {
		e.done = true
		w.counts.joins++
		w.screen.say("%s joins", nodeName(len(w.members)))
		return w.startNode(false)
	}
	m := w.pick(e.Event)
	if m == nil {
		return nil
	}
	e.done = true
	w.screen.say("%s: %s", m.name(), e.Event)
	l := m.current()
	switch e.Verb {
	case Start:
		return w.spawn(m)
	case Leave:
		w.counts.leaves++
		return l.leave()
	case Kill:
		w.counts.kills++
		return l.kill()
	case Pause:
		return l.pause()
	case Resume:
		return l.resume()
	}
	return nil
}

// pick returns the node that an event is about, if it is in a state in which
// the event means something.
func (w *world) pick(e Event) *member {
	var fit []*member
	for _, m := range w.members {
		l := m.current()
		var suits bool
		switch e.Verb {
		case Start:
			suits = l == nil
		case Resume:
			suits = l != nil && l.paused
		default:
			suits = l != nil && !l.asked && !l.killed
		}
		if suits && (e.Node == Any || e.Node == m.index) {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[w.rng.IntN(len(fit))]
}

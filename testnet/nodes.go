package testnet

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"atoll/gossip/wire"
	"atoll/node/joinlink"
	"atoll/testnet/controls"
)

// What the nodes of a world are told.
const (
	liveBytes = 16 << 10 // held-out bytes that node 0 evaluates live: the nodes share the cores, and a new value every few seconds is worth more than its third digit
	threads   = 1        // a learner is a slow machine here; the cores are shared
)

// startNode starts the next node. The first one begins the run from the genesis
// document; the others join it by link.
func (w *world) startNode(waitForLink bool) error {
	m := &member{index: len(w.members), planned: w.began, slow: 1}
	m.dir, m.divisor, m.link = w.path(m.name()), w.cfg.divisor(m.index), w.links.Of(m.index)
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
	m.newest().told = controls.Orders{Pace: w.paceOf(m), Link: m.link}
	w.running++
	return nil
}

// arguments are the command line of a node.
func (w *world) arguments(m *member) []string {
	if w.coordinator != nil {
		return w.baselineArguments(m)
	}
	args := []string{
		"testnet-node", m.dir, "--as", m.name(), "--keep", "all",
		"--data", w.cfg.Data, "--threads", strconv.Itoa(threads), "--batch", strconv.Itoa(w.genesis.Batch),
		"--pace", w.paceOf(m).String(), "--log-level", "info",
	}
	if link := w.shape(m.link); link != nil {
		args = append(args, "--shape", link.String())
	}
	if l := w.learners.of(m.index); l != "" {
		args = append(args, "--learner", l)
	}
	args = append(args, "--precision", w.precisionOf(m.index))
	if w.cfg.Trace {
		args = append(args, "--trace")
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

// pollTimeout is how long a node may take to say how it is: one that hangs never
// does.
const pollTimeout = 400 * time.Millisecond

// poll asks every running node for its status, all at once.
func (w *world) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for _, m := range w.members {
		l := m.current()
		if l == nil || l.paused {
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
	link := joinlink.Link{Run: wire.RunID(w.genesis.RunID())}
	for _, m := range w.members {
		l := m.current()
		if l == nil || !l.seen || l.asked || len(link.Peers) == maxLinkPeers {
			continue
		}
		own, err := joinlink.Parse(l.last.Link)
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

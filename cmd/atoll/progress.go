package main

import (
	"fmt"
	"sync"
	"time"

	"atoll/gossip/wire"
	"atoll/node/status"
)

// lineEvery is the time between two lines of progress.
const lineEvery = 5 * time.Second

// progress tells people what a node does. The node hands it a status now and
// then and never waits for it: of several that pile up the newest is shown.
type progress struct {
	out   *console
	json  bool
	ready chan struct{}

	mu     sync.Mutex
	newest *status.Snapshot
	ended  bool
	err    error

	// The fields of the goroutine that shows.
	linked bool
	stage  string
	line   time.Time // of the last line
	event  time.Time // of the last event shown
}

func newProgress(out *console, json bool) *progress {
	return &progress{out: out, json: json, ready: make(chan struct{}, 1)}
}

// offer gives progress the newest status.
func (p *progress) offer(s status.Snapshot) {
	p.mu.Lock()
	p.newest = &s
	p.mu.Unlock()
	p.wake()
}

// finish gives it the last one.
func (p *progress) finish(s status.Snapshot, err error) {
	p.mu.Lock()
	p.newest, p.ended, p.err = &s, true, err
	p.mu.Unlock()
	p.wake()
}

func (p *progress) wake() {
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// show prints until finish.
func (p *progress) show() {
	for range p.ready {
		p.mu.Lock()
		s, ended, err := p.newest, p.ended, p.err
		p.mu.Unlock()
		if s != nil && err == nil {
			p.print(*s, ended)
		}
		if ended {
			if err == nil && !p.json {
				p.out.say("%s", endLine(*s))
			}
			return
		}
	}
}

func (p *progress) print(s status.Snapshot, ended bool) {
	due := ended || time.Since(p.line) >= lineEvery
	if p.json {
		if due && s.Run != "" {
			p.line = time.Now()
			s.History = nil   // the lines are one
			_ = p.out.json(s) // the reader may have gone; the node goes on
		}
		return
	}
	p.printLink(s)
	p.printEvents(s)
	if s.Stage != "" && s.Stage != p.stage && s.State != status.Paused { // an event says why it is paused
		p.stage = s.Stage
		p.out.say("%s: %s", s.State, status.Printable(s.Stage))
	}
	if due && s.State != wire.Joining.String() {
		p.line = time.Now()
		p.out.say("%s", progressLine(s))
	}
}

func (p *progress) printLink(s status.Snapshot) {
	if !p.linked && s.Link != "" {
		p.linked = true
		p.out.say("others join with")
		p.out.answer("%s", s.Link)
		if text := guestText(s.Peers); text != "" {
			p.out.say("this node is a guest %s", text)
		}
	}
}

func (p *progress) printEvents(s status.Snapshot) {
	for _, e := range s.Events {
		if !e.At.After(p.event) {
			continue
		}
		p.event = e.At
		p.out.say("%s", eventLine(e))
	}
}

func eventLine(e status.Event) string {
	text := e.At.Format(time.TimeOnly) + " " + e.Kind
	if e.Peer != "" {
		text += " " + shortID(e.Peer)
	}
	return status.Printable(text + ": " + e.Said())
}

// progressLine is the state of a run in one line.
func progressLine(s status.Snapshot) string {
	text := fmt.Sprintf("%s step %d", s.State, s.Step)
	if s.TrainLoss > 0 {
		text += fmt.Sprintf("  loss %.3f", s.TrainLoss)
	}
	if s.ValBPB > 0 {
		text += fmt.Sprintf("  %.3f bits/byte", s.ValBPB)
	} else if s.ValLoss > 0 {
		text += fmt.Sprintf("  held out %.3f nats/token", s.ValLoss)
	}
	text += fmt.Sprintf("  folded %s of %s", percent(float64(s.TokensFolded), float64(s.BudgetTokens)), big(float64(s.BudgetTokens)))
	if s.TokensPerS > 0 {
		text += fmt.Sprintf("  %s tokens/s", big(s.TokensPerS))
	}
	text += fmt.Sprintf("  %s", peersText(livePeers(s), pausedPeers(s)))
	if s.ETASeconds > 0 {
		text += "  " + seconds(s.ETASeconds) + " left"
	}
	return text
}

func peersText(live, paused int) string {
	text := "alone"
	if live > 0 {
		text = plural(live, "peer", "peers")
	}
	if paused > 0 {
		text += fmt.Sprintf(", %d paused", paused)
	}
	return text
}

// pausedPeers counts the others that their owners have paused.
func pausedPeers(s status.Snapshot) (n int) {
	for _, p := range s.Peers {
		if !p.Self && p.State == status.Paused {
			n++
		}
	}
	return n
}

// livePeers counts the others that take part now.
func livePeers(s status.Snapshot) int {
	n := 0
	for _, p := range s.Peers {
		if !p.Self && isLive(p) {
			n++
		}
	}
	return n
}

// isLive tells whether a peer is here: it has a state of its own heartbeat.
func isLive(p status.Peer) bool {
	for _, s := range []wire.State{wire.Joining, wire.Training, wire.Stopped, wire.Observing} {
		if p.State == s.String() {
			return true
		}
	}
	return p.State == "connected"
}

// endLine says how a node's run ended.
func endLine(s status.Snapshot) string {
	folded := big(float64(s.TokensFolded)) + " tokens folded"
	if s.Finished {
		text := "the run is over: " + folded
		if q := qualityOf(s); q != "" {
			text += ", " + q
		}
		return text + ", state digest " + shortID(s.StateDigest)
	}
	return "left in order: " + folded + "; the same command goes on from here"
}

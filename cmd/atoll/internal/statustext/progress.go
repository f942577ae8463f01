package statustext

import (
	"fmt"
	"sync"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/wire"
	"atoll/node/status"
)

// Progress tells people what a node does. The node hands it a status now and
// then and never waits for it: of several that pile up the newest is shown.
type Progress struct {
	out   *cli.Console
	json  bool
	ready chan struct{}

	mu     sync.Mutex
	newest *status.Snapshot
	ended  bool
	err    error

	// The fields of the goroutine that shows.
	linked bool
	said   status.Condition
	line   time.Time // of the last line
	event  time.Time // of the last event shown
	held   []status.Event
}

// NewProgress tells it on a console, in lines of JSON if asked to.
func NewProgress(out *cli.Console, json bool) *Progress {
	return &Progress{out: out, json: json, ready: make(chan struct{}, 1)}
}

// Offer gives progress the newest status.
func (p *Progress) Offer(s status.Snapshot) {
	p.mu.Lock()
	p.newest = &s
	p.mu.Unlock()
	p.wake()
}

// Finish gives it the last one.
func (p *Progress) Finish(s status.Snapshot, err error) {
	p.mu.Lock()
	p.newest, p.ended, p.err = &s, true, err
	p.mu.Unlock()
	p.wake()
}

func (p *Progress) wake() {
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// Show prints until Finish.
func (p *Progress) Show() {
	for range p.ready {
		p.mu.Lock()
		s, ended, err := p.newest, p.ended, p.err
		p.mu.Unlock()
		if s != nil && err == nil {
			p.print(*s, ended)
		}
		if ended {
			if err == nil && !p.json {
				p.out.Say("%s", EndLine(*s))
			}
			return
		}
	}
}

func (p *Progress) print(s status.Snapshot, ended bool) {
	due := ended || time.Since(p.line) >= cli.LineEvery
	if p.json {
		if due && s.Run != "" {
			p.line = time.Now()
			s.History = nil   // the lines are one
			_ = p.out.JSON(s) // the reader may have gone; the node goes on
		}
		return
	}
	p.printLink(s)
	p.printEvents(s, ended)
	if c := s.Condition(); c != p.said {
		p.said = c
		if c.Why != "" && c.Word != status.Paused { // an event says why it is paused
			p.out.Say("%s", status.Printable(status.LabelsOf(s.Peers).In(c.Text())))
		}
	}
	if due && s.State != wire.Joining.String() {
		p.line = time.Now()
		p.out.Say("%s", progressLine(s))
	}
}

func (p *Progress) printLink(s status.Snapshot) {
	if !p.linked && s.Link != "" {
		p.linked = true
		p.out.Say("others join with")
		p.out.Answer("%s", s.Link)
		if s.LetsIn != "" {
			p.out.Say("(%s)", s.LetsIn)
		}
		if text := guestText(s.Peers); text != "" {
			p.out.Say("this node is a guest %s", text)
		}
	}
}

// nameWithin is how long the line about a machine that has come waits for its name, which it says when it is up.
const nameWithin = 10 * time.Second

func (p *Progress) printEvents(s status.Snapshot, ended bool) {
	labels := status.LabelsOf(s.Peers)
	all := p.held
	p.held = nil
	for _, e := range s.Events {
		if e.At.After(p.event) {
			p.event = e.At
			all = append(all, e)
		}
	}
	for _, e := range all {
		if unnamed := labels[status.ShortID(e.Peer)] == ""; e.Kind == "connected" && unnamed && s.At.Sub(e.At) < nameWithin && !ended {
			p.held = append(p.held, e)
			continue
		}
		p.out.Say("%s", EventLine(e, labels))
	}
}

// EventLine is an event as a line of a screen.
func EventLine(e status.Event, labels status.Labels) string {
	text := e.At.Format(time.TimeOnly) + " " + e.Kind
	if e.Peer != "" {
		text += " " + status.ShortID(e.Peer)
	}
	return status.Printable(labels.In(text + ": " + e.Said()))
}

// progressLine is the state of a run in one line.
func progressLine(s status.Snapshot) string {
	text := fmt.Sprintf("%s step %d", s.Condition().Word, s.Step)
	if s.TrainLoss > 0 {
		text += fmt.Sprintf("  loss %.3f", s.TrainLoss)
	}
	if s.ValBPB > 0 {
		text += fmt.Sprintf("  %.3f bits/byte", s.ValBPB)
	} else if s.ValLoss > 0 {
		text += fmt.Sprintf("  held out %.3f nats/token", s.ValLoss)
	}
	text += fmt.Sprintf("  folded %s of %s", cli.Percent(float64(s.TokensFolded), float64(s.BudgetTokens)), status.Count(float64(s.BudgetTokens)))
	if s.TokensPerS > 0 {
		text += fmt.Sprintf("  %s tokens/s", status.Count(s.TokensPerS))
	}
	text += fmt.Sprintf("  %s", peersText(status.LivePeers(s.Peers), pausedPeers(s)))
	if s.ETASeconds > 0 {
		text += "  " + cli.Seconds(s.ETASeconds) + " left"
	}
	return text
}

func peersText(live, paused int) string {
	text := "alone"
	if live > 0 {
		text = cli.Plural(live, "peer", "peers")
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

// EndLine says how a node's run ended.
func EndLine(s status.Snapshot) string {
	folded := status.Count(float64(s.TokensFolded)) + " tokens folded"
	if s.Finished {
		text := "the run is over: " + folded
		if q := qualityOf(s); q != "" {
			text += ", " + q
		}
		return text + ", state digest " + status.ShortID(s.StateDigest)
	}
	return "left in order: " + folded + "; the same command goes on from here"
}

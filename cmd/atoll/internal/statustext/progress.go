package statustext

import (
	"fmt"
	"slices"
	"strings"
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
	bar   *cli.Line // of a terminal, which is drawn anew; nil where every line stays
	dir   string    // of the node
	json  bool
	ready chan struct{}

	mu     sync.Mutex
	newest *status.Snapshot
	ended  bool
	err    error

	// The fields of the goroutine that shows.
	linked bool
	over   time.Time // when the run was
	told   bool      // what to do next
	worse  bool      // it has said that the model is
	said   status.Condition
	began  time.Time
	line   time.Time // of the last line
	event  time.Time // of the last event shown
	held   []status.Event
}

// NewProgress tells of the node of a folder on a console, in lines of JSON if asked to. bar is the line of the terminal where progress
// is drawn, nil for none.
func NewProgress(out *cli.Console, bar *cli.Line, json bool, dir string) *Progress {
	now := time.Now()
	return &Progress{out: out, bar: bar, json: json, dir: dir, ready: make(chan struct{}, 1), began: now, line: now}
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

// drawEvery is how often the line of a terminal is drawn, and beginEvery how often a node says elsewhere what it does until it has
// made a step: a person who has typed a command waits for something to happen.
const (
	drawEvery  = time.Second
	beginEvery = 2 * time.Second
)

// Show prints until Finish. It says how long a node does what it does, even where that has nothing new to say.
func (p *Progress) Show() {
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.ready:
		case <-tick.C:
		}
		p.mu.Lock()
		s, ended, err := p.newest, p.ended, p.err
		p.mu.Unlock()
		switch {
		case err != nil:
		case s != nil:
			p.print(*s, ended)
		default:
			p.print(status.Snapshot{Identity: status.Identity{State: wire.Joining.String(), Stage: "starts"}}, false)
		}
		if ended {
			if err == nil && !p.json {
				p.end(*s)
			}
			return
		}
	}
}

func (p *Progress) print(s status.Snapshot, ended bool) {
	if p.json {
		if due := ended || time.Since(p.line) >= cli.LineEvery; due && s.Run != "" {
			p.line = time.Now()
			s.History = nil   // the lines are one
			_ = p.out.JSON(s) // the reader may have gone; the node goes on
		}
		return
	}
	p.printLink(s)
	p.printEvents(s, ended)
	if i := slices.IndexFunc(s.Alarms, func(a status.Alarm) bool { return a.Kind == status.AlarmWorse }); i >= 0 && !p.worse {
		p.worse = true
		p.out.Say("%s", s.Alarms[i].Line())
	}
	if s.Finished && p.over.IsZero() {
		p.over = time.Now()
	}
	if s.Finished && !ended && !p.told && time.Since(p.over) >= staysAfter {
		p.out.Say("the run is over; this node stays for others until nobody needs it or you stop it")
		p.next(s)
	}
	if c := s.Condition(); c != p.said {
		p.said = c
		if p.bar == nil {
			p.line = time.Now().Add(-cli.LineEvery) // what is new is said at once
		}
	}
	p.printLine(s, ended)
}

// printLine draws the line of a terminal, and says elsewhere what it says when it is time to.
func (p *Progress) printLine(s status.Snapshot, ended bool) {
	if p.bar != nil && !ended {
		p.bar.Draw(p.text(s))
		return
	}
	if p.bar != nil {
		p.bar.Draw("") // the last one stays, as a line
	}
	every := cli.LineEvery
	if s.Step == 0 {
		every = beginEvery
	}
	if ended || time.Since(p.line) >= every {
		p.line = time.Now()
		p.out.Say("%s", p.text(s))
	}
}

// text is a status in one line: what the node does, and before it is in the run for how long.
func (p *Progress) text(s status.Snapshot) string {
	if s.State == wire.Joining.String() {
		return status.Printable(fmt.Sprintf("%s  (%s)", status.LabelsOf(s.Peers).In(s.Condition().Text()), cli.Seconds(time.Since(p.began).Seconds())))
	}
	return progressLine(s)
}

// end says how it ended, and what there is to do next.
func (p *Progress) end(s status.Snapshot) {
	p.out.Say("%s", EndLine(s))
	if gave := s.Gave(); gave != "" {
		p.out.Say("%s", gave)
	}
	p.next(s)
}

// next says once what there is to do with the model of a run that is over.
func (p *Progress) next(s status.Snapshot) {
	if !s.Finished || p.told || s.Worse() != "" {
		return
	}
	p.told = true
	p.out.Say("next:")
	_ = cli.Table(p.out.Err, indented(s.Next(status.ShellWord(p.dir)))...)
	p.out.Say("%s", status.Keeps)
}

func indented(rows [][]string) [][]string {
	for _, row := range rows {
		row[0] = "  " + row[0]
	}
	return rows
}

func (p *Progress) printLink(s status.Snapshot) {
	if !p.linked && s.Link != "" {
		p.linked = true
		p.out.Say("others join with")
		p.out.Answer("%s", s.Link)
		if s.LetsIn != "" {
			p.out.Say("(%s)", s.LetsIn)
		}
		if text := guestText(s); text != "" {
			p.out.Say("this node is a guest %s", text)
		}
		p.out.Say("to stop it: Ctrl-C publishes what is left and leaves; `atoll status %s` says more", status.ShellWord(p.dir))
	}
}

// staysAfter is how long after the end of the run a node that has not ended says that it stays: most end with the run.
const staysAfter = 10 * time.Second

// nameWithin is how long the line about a machine that has come waits for its name, which it says when it is up.
const nameWithin = 2 * time.Second

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
	for i, e := range all {
		if unnamed := labels[status.ShortID(e.Peer)] == ""; e.Kind == "connected" && unnamed && s.At.Sub(e.At) < nameWithin && !ended {
			p.held = all[i:] // what came after it is said after it
			return
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

// progressLine is the state of a run in one line. What a narrow terminal has no room for stands last.
func progressLine(s status.Snapshot) string {
	is := s.Condition()
	text := fmt.Sprintf("%s step %d", is.Word, s.Step)
	if is.Why != "" {
		text = fmt.Sprintf("%s, step %d", status.LabelsOf(s.Peers).In(is.Text()), s.Step)
	}
	if s.TrainLoss > 0 {
		text += fmt.Sprintf("  loss %.3f", s.TrainLoss)
	}
	if status.NotYet(s.Peers) != "" {
		return status.Printable(text + "  folded: not known yet")
	}
	text += fmt.Sprintf("  folded %s of %s", cli.Percent(float64(s.TokensFolded), float64(s.BudgetTokens)), status.Count(float64(s.BudgetTokens)))
	if s.ETASeconds > 0 {
		text += "  " + cli.Seconds(s.ETASeconds) + " left"
	}
	if s.TokensPerS > 0 {
		text += fmt.Sprintf("  %s tokens/s", status.Count(s.TokensPerS))
	}
	if live := status.LivePeers(s.Peers); live > 0 || !s.Finished { // who finished alone lacks nobody
		text += "  " + peersText(live, pausedPeers(s))
	}
	if s.ValAtTokens == 0 {
		return status.Printable(text) // what was measured is of values that nobody has trained
	}
	if s.ValBPB > 0 {
		text += fmt.Sprintf("  %.3f bits/byte", s.ValBPB)
	} else if s.ValLoss > 0 {
		text += fmt.Sprintf("  held out %.3f nats/token", s.ValLoss)
	}
	return status.Printable(text)
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
		if q := s.Worth(); q != "" {
			text += ", " + q
		}
		if w := s.Worse(); w != "" {
			return text + ". " + strings.ToUpper(w[:1]) + w[1:]
		}
		return text + ", state digest " + status.ShortID(s.StateDigest)
	}
	if l := s.Lost(); l != "" {
		return "left: " + folded + "; " + l
	}
	return "left in order: " + folded + "; the same command goes on from here"
}

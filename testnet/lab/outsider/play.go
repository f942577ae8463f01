package outsider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"atoll/testnet/lab/program"
	"atoll/testnet/lab/trials"
)

// calm is the name of a run that nobody attacks.
const calm = "calm"

// Trial is one run.
type Trial struct {
	Attack string  `json:"attack"` // or calm
	Turn   int     `json:"turn"`   // from 1
	Order  int     `json:"order"`  // in the turn, from 1
	Nodes  int     `json:"nodes"`
	PaceMs float64 `json:"pace_ms"`
	SpanS  float64 `json:"span_s"` // as asked
	Outcome
}

// Outcome is what a run came to while it was measured.
type Outcome struct {
	Trained     float64  `json:"trained_tokens_per_s"` // of all nodes together
	Folded      float64  `json:"folded_tokens_per_s"`  // of the node that has fewest
	NodesCPU    float64  `json:"nodes_cores"`          // processors that nodes kept busy, together
	OutsiderCPU float64  `json:"outsider_cores"`       // the same of this process: the outsider and the listener
	RSSBytes    uint64   `json:"most_rss_bytes"`       // of a node
	Files       int      `json:"most_open_files"`
	Goroutines  int      `json:"most_goroutines"`
	LogLines    int      `json:"log_lines"` // that nodes wrote
	Heard       hearing  `json:"heard"`
	Dials       int64    `json:"dials_elsewhere"`
	Did         did      `json:"outsider_did"`
	Verdicts    []string `json:"verdicts,omitempty"`
}

// did is what the outsider came to do, in all.
type did struct {
	Sockets  int64 `json:"sockets"`
	Lines    int64 `json:"lines"`
	Streams  int64 `json:"streams"`
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"`
	Refused  int64 `json:"handshakes_refused"`
	Admitted int64 `json:"handshakes_accepted"`
	Failed   int64 `json:"tries_cut_short"`
}

func (d *deeds) sum() did {
	return did{d.sockets.Load(), d.lines.Load(), d.streams.Load(), d.messages.Load(), d.bytes.Load(), d.refused.Load(), d.admitted.Load(), d.failed.Load()}
}

// before is how long the attack runs before it is measured: what nodes keep for ten seconds, such as connections without a
// handshake, has its full number then.
const before, quickBefore = 10 * time.Second, 3 * time.Second

// play plays all turns and prints what came of them.
func (s settings) play(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "atoll-outsider-")
	if err != nil {
		return fmt.Errorf("make a folder for runs: %w", err)
	}
	if !s.keep {
		defer os.RemoveAll(dir)
	}
	if s.atoll == "" {
		if s.atoll, err = program.Build(ctx, dir, s.log); err != nil {
			return err
		}
	}
	all, err := s.turns(ctx, dir)
	if err != nil {
		return err
	}
	rows := rowsOf(s.attacks, all)
	fmt.Fprint(out, tableOf(rows))
	if slices.ContainsFunc(rows, func(r row) bool { return len(r.missed()) > 0 }) {
		return errMissed
	}
	return nil
}

// worldsOf are the runs of a turn. It has calm ones at both ends: the machine may change between them.
func (s settings) worldsOf(turn int) []string {
	names := []string{calm}
	for _, a := range s.attacks {
		names = append(names, a.name)
	}
	return trials.InTurn(append(names, calm), turn)
}

// turns plays what is not in the file of trials.
func (s settings) turns(ctx context.Context, dir string) (all []Trial, err error) {
	var done []Trial
	if s.trials != "" {
		if done, err = trials.Read[Trial](s.trials); err != nil {
			return nil, err
		}
	}
	for turn := 1; turn <= s.runs; turn++ {
		for i, name := range s.worldsOf(turn) {
			t := s.trial(name, turn, i+1)
			if i := slices.IndexFunc(done, t.same); i >= 0 {
				all = append(all, done[i])
				continue
			}
			if t.Outcome, err = s.playOne(ctx, name, dir); err != nil {
				return all, fmt.Errorf("%s, turn %d: %w", name, turn, err)
			}
			fmt.Fprintf(s.log, "turn %d of %d, %s: %.0f tokens/s trained, %.0f folded\n", turn, s.runs, name, t.Trained, t.Folded)
			if all = append(all, t); s.trials != "" {
				if err := trials.Append(s.trials, t); err != nil {
					return all, err
				}
			}
		}
	}
	return all, nil
}

func (s settings) trial(name string, turn, order int) Trial {
	return Trial{Attack: name, Turn: turn, Order: order, Nodes: s.nodes, PaceMs: float64(s.pace) / float64(time.Millisecond), SpanS: s.span.Seconds()}
}

// same says whether another trial is of the same run.
func (t Trial) same(o Trial) bool {
	return o.Attack == t.Attack && o.Turn == t.Turn && o.Order == t.Order && o.Nodes == t.Nodes && o.PaceMs == t.PaceMs && o.SpanS == t.SpanS
}

// playOne starts a run, has it attacked, and measures it.
func (s settings) playOne(ctx context.Context, name, dir string) (o Outcome, err error) {
	place, err := os.MkdirTemp(dir, name+"-")
	if err != nil {
		return o, fmt.Errorf("make a folder for the run: %w", err)
	}
	if !s.keep {
		defer os.RemoveAll(place)
	}
	w, err := s.start(ctx, place)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, w.end()) }()
	b, err := stand()
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	k := w.knowledge()
	k.elsewhere = b.multiaddr()
	k.records, k.members = w.listener.met()
	out := newOutsider(k, w.listener.heard)
	stop, err := w.beset(ctx, out, name)
	if err != nil {
		return o, err
	}
	o, err = w.measure(ctx)
	stop()
	o.Heard, o.Dials, o.Did, o.Verdicts = w.listener.count(), b.dials.Load(), out.did.sum(), out.did.verdicts
	return o, err
}

// beset begins an attack, and returns what ends it.
func (w *world) beset(ctx context.Context, out *outsider, name string) (stop func(), err error) {
	a, attacked := attackNamed(name)
	if !attacked {
		return func() {}, nil
	}
	var targets []target
	for _, addr := range w.addrs {
		t, err := targetOf(addr)
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		out.attack(ctx, a, targets)
	}()
	return func() { cancel(); <-ended }, nil
}

// look is what nodes say and take at one time.
type look struct {
	at              []time.Time // of each node
	trained, folded []uint64
	nodesCPU, own   time.Duration
	wall            time.Time
	rss             uint64
	files, routines int
	logged          int
}

// look asks all nodes.
func (w *world) look(ctx context.Context) (l look, err error) {
	l.wall = time.Now()
	for _, n := range w.nodes {
		s, err := n.snapshot(ctx)
		if err != nil {
			return l, fmt.Errorf("a node does not say how it is: %w: %s", err, n.lastLine())
		}
		l.at, l.trained, l.folded = append(l.at, s.At), append(l.trained, s.TokensTrained), append(l.folded, s.TokensFolded)
		l.rss, l.files, l.routines = max(l.rss, s.RSSBytes), max(l.files, s.OpenFiles), max(l.routines, s.Goroutines)
		spent, err := cpuOf(strconv.Itoa(n.cmd.Process.Pid))
		if err != nil {
			return l, err
		}
		l.nodesCPU += spent
		logged, err := lines(n.log.Name())
		if err != nil {
			return l, err
		}
		l.logged += logged
	}
	l.own, err = cpuOf("self")
	return l, err
}

// measure looks again and again for as long as was asked, after the attack has come to its full strength.
func (w *world) measure(ctx context.Context) (o Outcome, err error) {
	wait := before
	if w.quick {
		wait = quickBefore
	}
	if err := sleep(ctx, wait); err != nil {
		return o, err
	}
	first, err := w.look(ctx)
	if err != nil {
		return o, err
	}
	last := first
	for end := first.wall.Add(w.span); time.Now().Before(end); {
		if err := sleep(ctx, min(time.Second, time.Until(end))); err != nil {
			return o, err
		}
		if last, err = w.look(ctx); err != nil {
			return o, err
		}
		o.RSSBytes, o.Files, o.Goroutines = max(o.RSSBytes, last.rss), max(o.Files, last.files), max(o.Goroutines, last.routines)
	}
	o.between(first, last)
	return o, nil
}

// between fills in what happened from one look to another.
func (o *Outcome) between(a, b look) {
	var folded []float64
	for i := range a.at {
		s := b.at[i].Sub(a.at[i]).Seconds()
		o.Trained += float64(b.trained[i]-a.trained[i]) / s
		folded = append(folded, (float64(b.folded[i])-float64(a.folded[i]))/s)
	}
	o.Folded = slices.Min(folded)
	wall := b.wall.Sub(a.wall)
	o.NodesCPU, o.OutsiderCPU = float64(b.nodesCPU-a.nodesCPU)/float64(wall), float64(b.own-a.own)/float64(wall)
	o.LogLines = b.logged - a.logged
}

package external

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"atoll/optimizer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
)

// Finding is one thing that Check looked at.
type Finding struct {
	What   string
	Wrong  string // empty: it is as it has to be
	Detail string
}

// Judge is a trainer that is known to be right, at the same values and with the same batches: so
// many steps are compared with its.
type Judge struct {
	Trainer trainer.Trainer
	Steps   int
}

// Tolerances of a judge: those of float32 sums in another order, and of a first step in which
// Adam divides by gradients near 0.
const (
	lossTolerance  = 1e-3 // relative; after many steps as well, while the rate rises slowly
	narrowLoss     = 2e-2 // the same for arithmetic that is narrower than float32
	valueTolerance = 0.02 // of the length of the step, as a Euclidean norm
	narrowResumed  = 0.1  // of the way of checkSteps: an accelerator adds up in another order each time, which came to 0.03 with 124 M values in bf16; without moments it is two fifths
	checkRate      = 1e-3 // of the last of warmup steps, and of all that follow
	warmup         = 30
	checkSteps     = 4
)

// rateOf is the learning rate of a step. Without a warm-up two trainers that differ by one
// rounding come to other losses within some twenty steps.
func rateOf(step int) float64 { return checkRate * min(1, float64(step+1)/warmup) }

// Pace is how often a run asks for what its learners have stepped.
type Pace struct {
	H         int // steps between two deltas of a fragment
	Fragments int
}

// checker is a check under way.
type checker struct {
	ctx      context.Context
	cfg      Config
	begin    []float32
	pace     Pace
	l        *Learner
	findings []Finding
	judged   bool // its first loss is the judge's
}

// Check starts a learner and does with it what a node does, beginning with values. It ends at the
// first thing that makes the rest meaningless. judge may be nil.
func Check(ctx context.Context, cfg Config, values []float32, pace Pace, judge *Judge) []Finding {
	c := &checker{ctx: ctx, cfg: cfg, begin: values, pace: pace}
	defer func() {
		if c.l != nil {
			c.l.Close()
		}
	}()
	for _, part := range []func() bool{
		c.starts, c.carries, func() bool { return c.steps(judge) }, c.pieces, c.evaluates, c.isFast, c.resumes, c.dies, c.diverges, c.stops, c.refusesAnother,
	} {
		if !part() || ctx.Err() != nil {
			break
		}
	}
	return c.findings
}

// found notes a thing, and whether it is as it has to be.
func (c *checker) found(what, detail string, err error) bool {
	f := Finding{What: what, Detail: detail}
	if err != nil {
		f.Wrong = err.Error()
	}
	c.findings = append(c.findings, f)
	return err == nil
}

func (c *checker) starts() bool {
	began := time.Now()
	l, err := Start(c.ctx, c.cfg)
	if err != nil {
		return c.found("it starts and has the run's tensors", "", err)
	}
	c.l = l
	copy(l.Params(), c.begin)
	detail := fmt.Sprintf("%s in %v; %.0f tokens/s, %s", l.Name(), time.Since(began).Round(10*time.Millisecond), l.Speed(), l.Precision())
	for _, d := range l.Devices() {
		detail += fmt.Sprintf("; %d x %s %s", d.Count, d.Kind, d.Name)
	}
	return c.found("it starts and has the run's tensors", detail, nil)
}

// carries loads everything and flushes it: not a bit may change.
func (c *checker) carries() bool {
	local := c.l.Params()
	err := c.l.move("load", c.l.slab.whole())
	c.l.current = err == nil
	clear(local)
	if err == nil {
		copy(local, c.begin) // where it adds what has changed, that is nothing
		err = c.l.Flush(c.l.slab.whole())
	}
	if err == nil {
		err = sameBits(local, c.begin)
	}
	return c.found("load and then flush change nothing, to the bit", "", err)
}

func sameBits(got, want []float32) error {
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			return fmt.Errorf("value %d is %v, was %v", i, got[i], want[i])
		}
	}
	return nil
}

// steps takes the first step, and compares it and those after it with the judge's.
func (c *checker) steps(judge *Judge) bool {
	began := time.Now()
	res, err := c.l.Step(c.ctx, rateOf(0))
	took := time.Since(began)
	if err == nil {
		err = c.l.Flush(c.l.slab.whole())
	}
	if err == nil && slices.Equal(c.l.Params(), c.begin) {
		err = errors.New("not one value has changed")
	}
	ok := c.found("a step changes values", fmt.Sprintf("%d tokens in %v, loss %.4f", res.Tokens, took.Round(time.Millisecond), res.Loss), err)
	if !ok || judge == nil {
		return ok
	}
	copy(judge.Trainer.Params(), c.begin)
	right, err := judge.Trainer.Step(c.ctx, rateOf(0))
	if err == nil {
		err = c.near(0, res.Loss, right.Loss)
	}
	if !c.found("the first loss is that of the built-in trainer", fmt.Sprintf("%.6f, %.6f", res.Loss, right.Loss), err) {
		return true
	}
	c.judged = true
	off := distance(c.l.Params(), judge.Trainer.Params()) / distance(c.begin, judge.Trainer.Params())
	if !(off <= valueTolerance) && !c.narrow() {
		err = fmt.Errorf("values are off by %.3f of the step's length: another optimizer, or other settings of it", off)
	}
	if c.found("the first step is that of the built-in trainer", fmt.Sprintf("off by %.1e of its length", off), err) {
		c.follow(judge)
	}
	return true
}

// narrow says that the learner computes in less than float32. Adam divides by gradients, so
// that rounding near 0 turns values of its first step round: nothing can be said of these.
func (c *checker) narrow() bool { return c.l.Precision() != "f32" }

// near says that a loss is not what it ought to be.
func (c *checker) near(step int, loss, right float64) error {
	if !c.alike(loss, right) {
		return fmt.Errorf("step %d: loss %.6f, the built-in trainer has %.6f", step, loss, right)
	}
	return nil
}

// alike says that two losses are the same, as far as the learner's precision goes.
func (c *checker) alike(a, b float64) bool {
	tolerance := lossTolerance
	if c.narrow() {
		tolerance = narrowLoss
	}
	return math.Abs(a/b-1) <= tolerance
}

// follow compares the losses of further steps with the judge's.
func (c *checker) follow(judge *Judge) {
	worst := 0.0
	for i := 1; i < judge.Steps; i++ {
		res, err := c.l.Step(c.ctx, rateOf(i))
		var right trainer.StepResult
		if err == nil {
			right, err = judge.Trainer.Step(c.ctx, rateOf(i))
		}
		if err == nil {
			err = c.near(i, res.Loss, right.Loss)
		}
		if err != nil {
			c.found("so are the losses that follow", "", err)
			return
		}
		worst = max(worst, math.Abs(res.Loss/right.Loss-1))
	}
	c.found("so are the losses that follow", fmt.Sprintf("%d steps, off by %.1e at most", judge.Steps, worst), nil)
}

func distance(a, b []float32) float64 {
	var sum float64
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += float64(d * d)
	}
	return math.Sqrt(sum)
}

// pieces moves part of the values.
func (c *checker) pieces() bool {
	local, n := c.l.Params(), len(c.begin)
	before := slices.Clone(local)
	piece := []optimizer.Span{{Offset: n / 3, Len: max(1, n/7)}}
	_, err := c.l.Step(c.ctx, checkRate)
	if err == nil {
		err = c.l.Flush(piece)
	}
	inside := func(i int) bool { return i >= piece[0].Offset && i < piece[0].Offset+piece[0].Len }
	for i := range local {
		if err == nil && !inside(i) && math.Float32bits(local[i]) != math.Float32bits(before[i]) {
			err = fmt.Errorf("value %d has changed, which is outside of the piece that was flushed", i)
		}
	}
	if err == nil {
		local[piece[0].Offset] = 0.125
		c.l.Load(piece)
		if err = c.l.Flush(piece); err == nil && local[piece[0].Offset] != 0.125 {
			err = fmt.Errorf("value %d is %v after a load of 0.125", piece[0].Offset, local[piece[0].Offset])
		}
	}
	return c.found("pieces are flushed and loaded alone", "", err)
}

// evaluates has it say what values are worth: those of before all steps, and its own, on the rows of the
// step that follows. That step has the same loss where the rows are of the same text, if its loss is one.
func (c *checker) evaluates() bool {
	const what = "it evaluates the values that it is given, and keeps its own"
	if !c.l.session.hello.Evaluates {
		return c.found(what, "it says that it does not evaluate", nil)
	}
	if err := c.l.Flush(c.l.slab.whole()); err != nil {
		return c.found(what, "", err)
	}
	own := slices.Clone(c.l.Params())
	starts, err := c.cfg.Starts(c.l.Steps(), c.l.rows)
	if err != nil {
		return c.found("it evaluates", "", err)
	}
	old, err := c.l.Evaluate(filling(c.begin), starts)
	if errors.Is(err, ErrNoEvaluation) {
		return c.found(what, err.Error(), nil)
	}
	var e Evaluation
	if err == nil {
		e, err = c.l.Evaluate(filling(own), starts)
	}
	if err == nil && e.Loss == old.Loss {
		err = fmt.Errorf("it says %v of the first values and of those after some steps: it has to evaluate what it loaded last", e.Loss)
	}
	if err == nil {
		err = sameBits(c.l.Params(), own)
	}
	var res trainer.StepResult
	if err == nil {
		res, err = c.l.Step(c.ctx, checkRate)
	}
	sameRows := c.judged && c.cfg.Text != "" && c.cfg.HeldOut == c.cfg.Text
	if err == nil && sameRows && !c.alike(e.Loss, res.Loss) {
		err = fmt.Errorf("it evaluates its values to a loss of %.6f, and says %.6f in a step on the same rows", e.Loss, res.Loss)
	}
	return c.found(what, fmt.Sprintf("loss %.6f on %d tokens", e.Loss, e.Tokens), err)
}

// filling sets values to others.
func filling(others []float32) func(values []float32) error {
	return func(values []float32) error {
		copy(values, others)
		return nil
	}
}

// resumes ends the process and starts it with its state: it goes on as it would have.
func (c *checker) resumes() bool {
	state, err := c.l.State()
	if err == nil {
		err = c.l.Flush(c.l.slab.whole())
	}
	if err != nil {
		return c.found("it saves its state and goes on from it", "", err)
	}
	begin := slices.Clone(c.l.Params())
	run := func() (losses []float64, err error) {
		for range checkSteps {
			res, err := c.l.Step(c.ctx, checkRate)
			if err != nil {
				return nil, err
			}
			losses = append(losses, res.Loss)
		}
		return losses, c.l.Flush(c.l.slab.whole())
	}
	straight, err := run()
	after := slices.Clone(c.l.Params())
	if err == nil {
		err = c.l.SetState(state)
	}
	var resumed []float64
	if err == nil {
		copy(c.l.Params(), begin)
		resumed, err = run()
	}
	if err == nil {
		tolerance := lossTolerance
		if c.narrow() {
			tolerance = narrowResumed
		}
		if off := distance(c.l.Params(), after) / distance(begin, after); !(off <= tolerance) {
			err = fmt.Errorf("after %d steps values are off by %.1e of their way; losses were %v, are %v", checkSteps, off, straight, resumed)
		}
	}
	return c.found("it saves its state and goes on from it", "", err)
}

// dies kills the process: the node must be able to start another.
func (c *checker) dies() bool {
	c.l.session.process.all.Kill()
	var err error
	// The processes of a data-parallel group end one after the other: the one that answers may have time for
	// another step.
	for until := time.Now().Add(stopWithin); err == nil && time.Now().Before(until); {
		_, err = c.l.Step(c.ctx, checkRate)
	}
	if err == nil {
		return c.found("killed, it is gone and starts again", "", errors.New("it answers although it was killed: is it a process of its own?"))
	}
	if err = c.l.Restart(c.ctx); err == nil {
		_, err = c.l.Step(c.ctx, checkRate)
	}
	return c.found("killed, it is gone and starts again", "", err)
}

// diverges has it compute with values that are no numbers.
func (c *checker) diverges() bool {
	local := c.l.Params()
	before := slices.Clone(local)
	for i := range local {
		local[i] = float32(math.NaN())
	}
	c.l.Load(c.l.slab.whole())
	res, err := c.l.Step(c.ctx, checkRate)
	copy(local, before)
	switch {
	case err == nil && math.Abs(res.Loss) <= math.MaxFloat64:
		return c.found("it says that it diverged", "", nil) // it does not look at its values: nothing can be said
	case err == nil || !errors.Is(err, trainer.ErrDiverged):
		return c.found("it says that it diverged", "", fmt.Errorf("with values that are no numbers it answers a loss of %v, error %v: an error of kind diverged is due", res.Loss, err))
	}
	return c.found("it says that it diverged", "", nil)
}

// stops ends it in order.
func (c *checker) stops() bool {
	if c.l.lost != nil {
		if err := c.l.Restart(c.ctx); err != nil {
			return c.found("it ends when it is told to", "", err)
		}
	}
	p := c.l.session.process
	err := c.l.Close()
	c.l = nil
	if err == nil && p.err != nil {
		err = fmt.Errorf("it did not end by itself within %v, or with a code: %w", stopWithin, p.err)
	}
	return c.found("it ends when it is told to", "", err)
}

// Limits of a check: the slowest of what a node can live with.
const (
	// moveAllowance and moveRate bound a flush or load of all values: what a slow bus, or a copy of a copy, stays far
	// below, and a loop over values does not.
	moveAllowance = time.Second
	moveRate      = 256 << 20 // bytes a second
	// speedTries are the measurements of which the fastest counts: a busy machine is not the learner's fault.
	speedTries = 3
)

// isFast measures steps, flushes and loads.
func (c *checker) isFast() bool {
	whole := c.l.slab.whole()
	step, err := fastest(func() error { _, err := c.l.Step(c.ctx, checkRate); return err })
	var flush, load time.Duration
	if err == nil {
		flush, err = fastest(func() error { return c.l.Flush(whole) })
	}
	if err == nil {
		load, err = fastest(func() error { return c.l.move("load", whole) })
	}
	text := ""
	if err == nil {
		text, err = c.pace.judge(step, flush, load, 4*len(c.begin))
	}
	return c.found("steps, flush and load are fast enough", text, err)
}

func fastest(do func() error) (least time.Duration, err error) {
	for i := range speedTries {
		began := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		if took := time.Since(began); i == 0 || took < least {
			least = took
		}
	}
	return least, nil
}

// judge says what the times of a step, and of a flush and a load of all values, mean for rounds.
// The error names the first that is too slow.
func (p Pace) judge(step, flush, load time.Duration, bytes int) (text string, err error) {
	round := time.Duration(p.H) * step
	text = fmt.Sprintf("a step takes %v: with H = %d each of %d fragments is flushed and loaded every %v, and all of that takes %v, %.2g %% of the time",
		short(step), p.H, p.Fragments, short(round), short(flush+load), 100*float64(flush+load)/float64(round+flush+load))
	if step > LeaveWithin {
		return text, fmt.Errorf("a step takes %v: a node that leaves waits %v for it, and then gives it up: use fewer rows", short(step), LeaveWithin)
	}
	most := moveAllowance + time.Duration(float64(bytes)/moveRate*float64(time.Second))
	for _, move := range []struct {
		what string
		took time.Duration
	}{{"flush", flush}, {"load", load}} {
		if move.took > most {
			return text, fmt.Errorf("a %s of %.4g MiB takes %v, at most %v are allowed: no step is taken meanwhile; copy whole tensors, not value by value", move.what, float64(bytes)/(1<<20), short(move.took), short(most))
		}
	}
	return text, nil
}

// short is a time with three digits or so.
func short(d time.Duration) time.Duration {
	for unit := time.Second; unit > time.Microsecond; unit /= 10 {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}

// another is a layout in which the last tensor is one larger in its first dimension, and that tensor's name. A scalar
// becomes a vector.
func another(views []tensor.View) ([]tensor.View, string) {
	specs := make([]tensor.Spec, 0, len(views))
	for _, v := range views {
		specs = append(specs, tensor.Spec{Name: v.Name, Shape: slices.Clone(v.Shape)})
	}
	last := &specs[len(specs)-1]
	if len(last.Shape) == 0 {
		last.Shape = []int{1}
	}
	last.Shape[0]++
	return tensor.Layout(specs), last.Name
}

// refusesAnother starts it for a run with another layout.
func (c *checker) refusesAnother() bool {
	views, name := another(c.cfg.Views)
	text, err := c.meetsAnother(views, name)
	return c.found("it refuses a run with another layout, names the tensor and ends", text, err)
}

func (c *checker) meetsAnother(views []tensor.View, name string) (text string, err error) {
	cfg := c.cfg
	cfg.Views, cfg.Dir, cfg.State = views, filepath.Join(cfg.Dir, "another"), nil
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return "", err
	}
	slab, err := newSlab(cfg)
	if err != nil {
		return "", err
	}
	defer slab.close()
	s, err := start(c.ctx, cfg.Command, cfg.Log)
	if err != nil {
		return "", err
	}
	defer s.kill()
	l := &Learner{cfg: cfg, layout: LayoutDigest(views), slab: slab, rows: cfg.Rows, session: s}
	_, err = l.ask(c.ctx, l.run(), "ready")
	refused := (*refusal)(nil)
	switch {
	case err == nil:
		return "", fmt.Errorf("it takes a run whose tensor %s is larger than before: compare the run's tensors with those of your model, and answer run with an error that names the first that differs", name)
	case !errors.As(err, &refused):
		return "", fmt.Errorf("an error that names tensor %s is due: %w", name, s.ended(err))
	case !strings.Contains(refused.text, name):
		return "", fmt.Errorf("it says %q, and does not name tensor %s, which is larger than before", refused.text, name)
	}
	s.conn.Close()
	if !s.process.gone() {
		return "", fmt.Errorf("it is still there %v after the connection has ended", stopWithin)
	}
	return refused.text, nil
}

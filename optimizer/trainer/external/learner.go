package external

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"atoll/optimizer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
)

// Config is what a learner needs to know of a run, and of its node.
type Config struct {
	Command   Run           // how to start the learner, or where it attaches
	Dir       string        // folder for the optimizer's state, and the slab of a script that attaches
	Views     []tensor.View // trained tensors, one after the other
	Recipe    string        // what the run's learners agree on, a JSON string
	Seed      uint64        // the run's
	Author    [32]byte      // the learner
	Rows      int           // batch that the run has in mind
	Context   int           // tokens of a row
	Text      string        // file of tokens, a byte each, or folder of a corpus in shards
	HeldOut   string        // the same that is not trained on; of a corpus the same folder
	Tokenizer string        // folder of the tokenizer that the model brings; "" where it brings none

	State []byte // what State returned in an earlier process; nil for none

	// Leaving ends when the node leaves: what is asked for then has LeaveWithin. nil = never.
	Leaving context.Context
	// Starts are the places in Text at which the rows of a step begin, or an error where the tokens
	// are not there yet.
	Starts func(step int64, rows int) ([]uint64, error)
	// MostTokens bounds what a step may claim.
	MostTokens uint64
	// Ready is told of each learner that is ready, before its first step; an error refuses it. nil = none.
	Ready func(*Learner) error
	// Slow is told how long a learner that the node starts has taken so far, where that is SlowAfter (0 = slowAfter) or more: again
	// each time it has doubled, and 0 once the wait is over. nil = nobody.
	Slow      func(took time.Duration)
	SlowAfter time.Duration
	// Log is told each line that the learner writes to stderr. It must not block.
	Log func(line string)
}

// Learner is a trainer.Trainer in another process.
type Learner struct {
	cfg    Config
	layout string // digest of Config.Views
	slab   *slab
	aside  aside // where the slab's values are during an evaluation; none before the first
	rows   int
	taken  int64 // steps
	saved  state // the last that State returned
	slot   int   // of the next save

	door      *door // where scripts come that run already; nil where the node starts its learner
	session   *session
	ready     answer
	lost      error // why the learner is gone; nil while it answers
	accounted bool  // and nothing is left of it to account for
	current   bool  // the learner has taken all values from the slab
}

var _ trainer.Trainer = (*Learner)(nil)

// Times of a learner. What it does in a step is its own business, so they are long: only one
// that will never answer is to be found.
const (
	// answerWithin is how long any answer may take.
	answerWithin = 10 * time.Minute
	// LeaveWithin is how long a node that leaves waits for an answer: a step of another process
	// cannot be cut.
	LeaveWithin = 30 * time.Second
	// slowAfter is when a start takes long: Python alone is there within a second.
	slowAfter = 5 * time.Second
)

// Start starts the learner of a config. Its values are 0 until the caller sets Params. The error
// says what to do.
func Start(ctx context.Context, cfg Config) (*Learner, error) {
	var err error
	if cfg.Tokenizer != "" {
		cfg.Tokenizer, err = filepath.Abs(cfg.Tokenizer)
	}
	if err == nil {
		cfg.Dir, err = filepath.Abs(cfg.Dir) // the learner may work in another folder
	}
	if err == nil {
		err = os.MkdirAll(cfg.Dir, 0o755)
	}
	if err == nil {
		err = dropAside(cfg.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("create the learner's folder: %w", err)
	}
	s, err := newSlab(cfg)
	if err != nil {
		return nil, fmt.Errorf("share values with the learner: %w", err)
	}
	l := &Learner{cfg: cfg, layout: LayoutDigest(cfg.Views), slab: s, rows: cfg.Rows, lost: ErrNobody, accounted: true}
	if err := l.resume(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return l, nil
}

// resume starts the process with the state of an earlier one, if there is one, or begins to wait for
// a script.
func (l *Learner) resume(ctx context.Context) (err error) {
	if err := l.remember(l.cfg.State); err != nil {
		l.cfg.Log(err.Error())
	}
	if l.cfg.Command.Attach == "" {
		return l.Restart(ctx)
	}
	l.door, err = openDoor(l.cfg.Command.Attach, l.cfg.Log)
	return err
}

// remember takes in what State returned.
func (l *Learner) remember(b []byte) error {
	if b == nil {
		return nil
	}
	var s state
	switch err := json.Unmarshal(b, &s); {
	case err != nil:
		return errors.New("the optimizer's state is of the built-in trainer: it begins anew")
	case s.File != filepath.Base(s.File):
		return fmt.Errorf("the optimizer's state is in %q, which is not in the learner's folder: it begins anew", s.File)
	}
	l.saved, l.taken = s, s.Steps
	if s.File == "optimizer-0" {
		l.slot = 1
	}
	return nil
}

// start meets a learner and tells it of the run.
func (l *Learner) start(ctx context.Context) (err error) {
	if l.door == nil && l.cfg.Slow != nil {
		defer l.reportSlow()()
	}
	s, err := l.connect(ctx)
	if err != nil {
		return err
	}
	l.session, l.lost, l.accounted, l.current = s, nil, false, false
	if err := l.begin(ctx); err != nil {
		return fmt.Errorf("start the learner: %w", l.end(err))
	}
	if err := l.fits(); err != nil {
		WriteFrame(s.conn, refused{"refused", err.Error()})
		l.end(err)
		return err
	}
	return nil
}

// reportSlow reports a start that takes long, until stop is called.
func (l *Learner) reportSlow() (stop func()) {
	began, ended, over := time.Now(), make(chan struct{}), make(chan struct{})
	pause := cmp.Or(l.cfg.SlowAfter, slowAfter)
	go func() {
		defer close(over)
		told := false
		for ; ; pause = time.Since(began) {
			select {
			case <-time.After(pause):
				l.cfg.Slow(time.Since(began))
				told = true
			case <-ended:
				if told {
					l.cfg.Slow(0)
				}
				return
			}
		}
	}()
	return func() { close(ended); <-over }
}

// connect starts the process, or takes the script that came.
func (l *Learner) connect(ctx context.Context) (*session, error) {
	if l.door == nil {
		return start(ctx, l.cfg.Command, l.cfg.Log)
	}
	if s := l.door.accept(); s != nil {
		return s, nil
	}
	return nil, ErrNobody
}

// Absent says that no script is there to train, and none that Restart would take. It may be called
// from anywhere.
func (l *Learner) Absent() bool { return l.door != nil && l.door.empty() }

// begin tells a learner of the run. A script that refuses the state of an earlier one stays, and is told again.
func (l *Learner) begin(ctx context.Context) (err error) {
	l.ready, err = l.ask(ctx, l.run(), "ready")
	if l.session.process == nil && l.forgets(err) {
		l.ready, err = l.ask(ctx, l.run(), "ready")
	}
	return err
}

// forgets leaves the state of an earlier learner if this one refuses it, or if it is not there any more: it
// costs quality for a few steps.
func (l *Learner) forgets(err error) bool {
	refused := (*refusal)(nil)
	if l.saved.File == "" || !errors.As(err, &refused) {
		return false
	}
	l.cfg.Log(fmt.Sprintf("begins without the optimizer's state: %v", err))
	l.saved.File = ""
	return true
}

// fits refuses a learner that is not of this run.
func (l *Learner) fits() error {
	if l.ready.Layout != l.layout {
		return fmt.Errorf("the learner %s trains other tensors (layout %.16s) than the run (layout %.16s): give it the model of the run", l.session.hello.Name, l.ready.Layout, l.layout)
	}
	if l.cfg.Ready == nil {
		return nil
	}
	return l.cfg.Ready(l)
}

func (l *Learner) run() run {
	r := run{
		Type: "run", Slab: l.slab.path, Begin: l.slab.begin, Values: len(l.slab.values), Layout: l.layout,
		Recipe: l.cfg.Recipe, Seed: l.cfg.Seed, Author: hex.EncodeToString(l.cfg.Author[:]), Rows: l.rows, Context: l.cfg.Context,
		Text: l.cfg.Text, HeldOut: l.cfg.HeldOut, Tokenizer: l.cfg.Tokenizer, Steps: l.taken,
	}
	if l.saved.File != "" {
		r.Resume = filepath.Join(l.cfg.Dir, l.saved.File)
	}
	for _, v := range l.cfg.Views {
		shape := v.Shape
		if shape == nil {
			shape = []int{}
		}
		r.Tensors = append(r.Tensors, tensorSpec{v.Name, shape, v.Offset})
	}
	return r
}

// Restart implements trainer.Trainer.
func (l *Learner) Restart(ctx context.Context) error {
	err := l.start(ctx)
	if l.door == nil && l.forgets(err) {
		err = l.start(ctx)
	}
	l.accounted = err != nil // the slab is whole, and nothing was stepped since
	return err
}

// Lost is why the learner is gone, nil while it answers.
func (l *Learner) Lost() error { return l.lost }

// Unflushed says that a learner that is gone has stepped what the slab has not, and Accounted was not called since.
func (l *Learner) Unflushed() bool { return l.lost != nil && !l.accounted }

// Accounted says that all is accounted for of a learner that is lost: Params are whole, and there is
// nothing to flush until it has stepped again.
func (l *Learner) Accounted() { l.accounted = l.lost != nil }

// Close ends the process, or tells the script to stop.
func (l *Learner) Close() (err error) {
	l.halt()
	if l.door != nil {
		err = l.door.close()
	}
	err = errors.Join(err, l.aside.close(), l.slab.close())
	l.aside = aside{}
	return err
}

// halt ends the learner in order, if there is one.
func (l *Learner) halt() {
	if l.lost == nil {
		l.session.stop()
		l.lost = fmt.Errorf("the node has ended it: %w", trainer.ErrLost)
	}
}

// Params implements trainer.Trainer.
func (l *Learner) Params() []float32 { return l.slab.values }

// Steps implements trainer.Trainer.
func (l *Learner) Steps() int64 { return l.taken }

// SetRows sets the rows of a step.
func (l *Learner) SetRows(rows int) { l.rows = rows }

// Speed is how many tokens a second the learner measured, 0 if it did not.
func (l *Learner) Speed() float64 {
	if s := l.ready.TokensPerSecond; s > 0 && !math.IsInf(s, 1) {
		return s
	}
	return 0
}

// Devices are what the learner says that it trains on, and Precision how.
func (l *Learner) Devices() []Device { return l.session.hello.Devices }

// Precision is that of the learner's arithmetic, f32 where it does not say.
func (l *Learner) Precision() string {
	if p := l.session.hello.Precision; p != "" {
		return p
	}
	return "f32"
}

// Name is the learner's, with its version.
func (l *Learner) Name() string { return l.session.name() }

// Step implements trainer.Trainer. A step of another process cannot be cut: where ctx ends, it
// waits for LeaveWithin.
func (l *Learner) Step(ctx context.Context, lr float64) (trainer.StepResult, error) {
	if l.lost != nil {
		return trainer.StepResult{}, l.lost
	}
	if !l.current {
		if err := l.move("load", l.slab.whole()); err != nil {
			return trainer.StepResult{}, err
		}
		l.current = true
	}
	starts, err := l.cfg.Starts(l.taken, l.rows)
	if err != nil {
		return trainer.StepResult{}, fmt.Errorf("train step %d: %w: %w", l.taken+1, trainer.ErrNoBatch, err)
	}
	a, err := l.ask(ctx, step{"step", l.taken, lr, starts}, "stepped")
	if errors.Is(err, errLeaves) {
		return trainer.StepResult{}, l.letGo()
	}
	if err == nil && (a.Tokens < 1 || uint64(a.Tokens) > l.cfg.MostTokens) {
		err = fmt.Errorf("the learner says that step %d had %d tokens; a step of this run has 1 to %d", l.taken, a.Tokens, l.cfg.MostTokens)
	}
	if err != nil {
		return trainer.StepResult{}, l.end(err)
	}
	l.taken++
	return trainer.StepResult{Tokens: a.Tokens, Loss: a.Loss}, nil
}

// letGo takes what a script has stepped that leaves, so that nothing is lost.
func (l *Learner) letGo() error {
	if err := l.Flush(l.slab.whole()); err != nil {
		return err
	}
	l.session.kill()
	l.lost, l.accounted = fmt.Errorf("%s: %w", l.Name(), ErrLeft), true
	return l.lost
}

// Flush implements trainer.Trainer.
func (l *Learner) Flush(pieces []optimizer.Span) error {
	if l.accounted || l.lost == nil && !l.current {
		return nil // it has nothing that the slab has not
	}
	if err := l.move("flush", pieces); err != nil {
		return err
	}
	for _, p := range pieces {
		if i := notFinite(l.slab.values[p.Offset : p.Offset+p.Len]); i >= 0 {
			return l.end(fmt.Errorf("value %d is %v: %w: use a lower learning rate, or more precision", p.Offset+i, l.slab.values[p.Offset+i], trainer.ErrDiverged))
		}
	}
	return nil
}

// notFinite is the place of the first value that is no finite number, or -1. Squares of float32
// add up to a finite float64, unless one of them is none; the kernel reads as fast as a copy.
func notFinite(values []float32) int {
	if sum := tensor.SumSquares(values); sum-sum == 0 {
		return -1
	}
	for i, x := range values {
		if x-x != 0 {
			return i
		}
	}
	return -1
}

// Load implements trainer.Trainer.
func (l *Learner) Load(pieces []optimizer.Span) {
	if l.lost == nil && l.current {
		l.move("load", pieces) // an error is what lost says
	}
}

// move has values copied from or to the slab.
func (l *Learner) move(what string, pieces []optimizer.Span) error {
	if l.lost != nil {
		return l.lost
	}
	m := move{Type: what, Pieces: make([][2]int, 0, len(pieces))}
	for _, p := range pieces {
		m.Pieces = append(m.Pieces, [2]int{p.Offset, p.Len})
	}
	want := map[string]string{"load": "loaded", "flush": "flushed"}[what]
	if _, err := l.ask(l.leaving(), m, want); err != nil {
		return l.end(err)
	}
	return nil
}

// leaving ends when the node leaves.
func (l *Learner) leaving() context.Context {
	if l.cfg.Leaving == nil {
		return context.Background()
	}
	return l.cfg.Leaving
}

// state is what a checkpoint has of a learner: the steps, and the file that it saved.
type state struct {
	Learner string // name of the program
	File    string // in Config.Dir
	Steps   int64
}

// SaveState implements trainer.Trainer: what it gives is what State returns.
func (l *Learner) SaveState() (io.Reader, error) {
	b, err := l.State()
	return bytes.NewReader(b), err
}

// MostState is more than what State returns has, in bytes.
const MostState = 64 << 10

// LoadState implements trainer.Trainer by SetState.
func (l *Learner) LoadState(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, MostState))
	if err != nil {
		return fmt.Errorf("load learner state: %w", err)
	}
	return l.SetState(b)
}

// State has the learner write its state to one of two files, and
// the result names it. So the last one is whole until the next is.
func (l *Learner) State() ([]byte, error) {
	if l.lost != nil {
		return nil, l.lost
	}
	s := state{Learner: l.session.hello.Name, File: fmt.Sprintf("optimizer-%d", l.slot), Steps: l.taken}
	_, err := l.ask(l.leaving(), save{"save", filepath.Join(l.cfg.Dir, s.File)}, "saved")
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		return nil, err // it goes on, without a newer state
	}
	if err != nil {
		return nil, l.end(err)
	}
	l.saved, l.slot = s, 1-l.slot
	return json.Marshal(s)
}

// SetState begins again with that state.
func (l *Learner) SetState(b []byte) error {
	if err := l.remember(b); err != nil {
		return fmt.Errorf("set learner state: %w", err)
	}
	l.halt()
	return l.start(context.Background())
}

// ask sends a request and reads its answer.
func (l *Learner) ask(ctx context.Context, request any, want string) (answer, error) {
	return l.askWithin(ctx, answerWithin, request, want)
}

func (l *Learner) askWithin(ctx context.Context, within time.Duration, request any, want string) (a answer, err error) {
	conn := l.session.conn
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return a, err
	}
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now().Add(LeaveWithin)) })()
	if err := WriteFrame(conn, request); err != nil {
		return a, err
	}
	if a, err = readFrame(conn); err != nil {
		return a, err
	}
	switch a.Type {
	case want:
		return a, nil
	case "error":
		return a, failure(a)
	}
	return a, fmt.Errorf("the learner answered %.40q where %q was due", a.Type, want)
}

// refusal is an error that the learner told of: it goes on, and what was asked for has not
// happened.
type refusal struct{ text string }

func (r *refusal) Error() string { return "the learner says: " + r.text }

// failure is the error of such an answer.
func failure(a answer) error {
	text := a.Error
	if a.Remedy != "" {
		text += "; " + a.Remedy
	}
	switch a.Kind {
	case "diverged":
		return fmt.Errorf("%w: %w", &refusal{text}, trainer.ErrDiverged)
	case "leaving":
		return errLeaves
	}
	return &refusal{text}
}

// end lets go of a learner that did not answer as it has to, and says why.
func (l *Learner) end(err error) error {
	why := l.session.ended(err)
	l.session.kill()
	l.lost = fmt.Errorf("%w: %w", trainer.ErrLost, why)
	l.accounted = !l.current // what it had loaded in part, or held for an evaluation, the slab has as well
	return l.lost
}

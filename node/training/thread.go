package training

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"atoll/node/clock"
	"atoll/node/mailbox"
	"atoll/node/status"
	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
)

// Config is what a Thread steps with, and what it tells.
type Config struct {
	Trainer  trainer.Trainer
	Schedule optimizer.Schedule
	Pace     time.Duration // least time of a step
	Clock    *clock.Clock  // every time here is that awake: a sleep is no step and no wait
	Beside   int           // fragments of the run, where the trainer is another process: commands are done in the background; 0: it steps the local parameters itself
	Save     Save          // checkpoints the inner optimizer

	Stepped func(res trainer.StepResult, took time.Duration) // counts the step; never blocks
	Tune    func(ctx context.Context) error                  // suits the trainer to the text and the machine, before its first step; nil: it is done
	Back    func()                                           // says that a trainer that was gone trains again
	Lacking func(err error)                                  // says what a step waits for
	Lost    func(err error)                                  // takes off what a trainer that is gone had and did not publish
	Absent  func() bool                                      // whether its trainer has yet to come, from elsewhere; nil for one that the node starts
	Report  func(what string, err error)                     // takes what could not be kept; nil where it was
}

// Thread is the thread that steps. It hears of tips and drafts at step
// boundaries only, unless they are done in the background. It tells the loop what it did
// through functions that never block, so it never waits for a peer or for the
// loop. It needs the disk for one record of the step log per step, and reads
// own payloads back where an adoption asks for them.
type Thread struct {
	cfg        Config
	commands   *mailbox.Mailbox[func()] // to be done at a step boundary, or in the background; these alone touch the local parameters
	background *background              // nil: the trainer steps the local parameters itself
	woken      chan struct{}            // holds a token when there is something new to look at, see wake
	saver      *saver
	rows       int // of the next part of an evaluation; of the commands

	mu       sync.Mutex
	doing    *float64      // in the account, what the last command did
	pace     time.Duration // least time of a step
	may      bool
	paused   bool               // by its owner
	stepping bool               // inside a step
	cut      context.CancelFunc // ends that step without its result; nil outside
	fraction float64            // of the budget that is made, see core.Machine.Progress
	account  status.TimeAccount
	loss     float64 // running mean
	rate     float64 // learning rate of the last step
	steps    int64   // done by this process
	tokens   uint64  // in these steps
	lacks    bool    // a step waits for its tokens
	begun    timestamp
	booked   timestamp // when time was last put into the account
	started  bool      // whether it ever might step
	trained  timestamp // when may last became true
	active   time.Duration
	marks    [2]mark // moments that speed is measured from: the first is older
}

// New is a thread that has yet to run.
func New(cfg Config) *Thread {
	t := &Thread{cfg: cfg, pace: cfg.Pace, commands: mailbox.New[func()](), woken: make(chan struct{}, 1)}
	t.saver = &saver{Save: cfg.Save, clock: cfg.Clock, report: cfg.Report}
	if cfg.Beside > 0 {
		t.background = newBackground(t.commands, cfg.Beside)
	}
	return t
}

// Do has a command done where the local parameters may be touched, one after the other. It never blocks.
func (t *Thread) Do(command func()) { t.commands.Put(command) }

// Rest keeps the trainer at rest until the command that calls it is over.
func (t *Thread) Rest() { t.background.Pause() }

// timestamp is a moment of the training thread: how long the process had been
// awake and asleep by then.
type timestamp struct{ awake, asleep time.Duration }

func (t *Thread) now() timestamp {
	awake, asleep := t.cfg.Clock.Read()
	return timestamp{awake, asleep}
}

// since is the time awake since a moment.
func (t *Thread) since(at timestamp) time.Duration { return t.cfg.Clock.Awake() - at.awake }

// lossDecay is the weight of the past in the running mean of the loss: about
// the last fifty steps count.
const lossDecay = 0.98

// MeanLoss is the running mean of the loss after one more step; 0 means no step
// yet.
func MeanLoss(mean, loss float64) float64 {
	if mean == 0 {
		mean = loss
	}
	return lossDecay*mean + (1-lossDecay)*loss
}

// SetMay lets the thread step, or not.
func (t *Thread) SetMay(may bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if may && !t.may {
		t.started, t.trained = true, t.now()
	}
	if !may && t.may {
		t.active += t.since(t.trained)
	}
	t.may = may
	t.wake()
}

// wake has the thread book what it waited for until now, and see what it may do.
func (t *Thread) wake() {
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

// SetPaused says whether what the thread waits for is its owner.
func (t *Thread) SetPaused(paused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = paused
	t.wake()
}

func (t *Thread) mayStep() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.may
}

// AtRest says that no step is under way and none will begin: whatever was
// stepped has been told.
func (t *Thread) AtRest() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.may && !t.stepping
}

// CutStep ends the step that is under way, if there is one: the parameters stay as they were
// before, and the step is none.
func (t *Thread) CutStep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut != nil {
		t.cut()
	}
}

// SetPace sets the least time of a step.
func (t *Thread) SetPace(least time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pace = least
	t.wake()
}

func (t *Thread) leastTime() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pace
}

// SetFraction says how much of the budget is made, 0 to 1: the learning rate follows it.
func (t *Thread) SetFraction(f float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fraction = f
}

func (t *Thread) setLacks(lacks bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lacks = lacks
}

// LacksData reports whether a step waits for its tokens.
func (t *Thread) LacksData() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lacks
}

// Run steps until ctx ends. Errors of the trainer end it.
func (t *Thread) Run(ctx context.Context) error {
	var gone outage
	lacking := false
	t.begin(t.now())
	if err := t.tune(ctx); err != nil {
		return cutBy(ctx, err)
	}
	t.saver.begin()
	defer t.saver.end()
	if t.background != nil {
		ctx, end := context.WithCancel(ctx)
		go t.background.run(ctx, func() { t.does(nil) })
		defer func() { end(); <-t.background.over }()
	}
	for ctx.Err() == nil {
		t.boundary()
		if !t.wait(ctx) {
			continue
		}
		done := t.turn()
		if ctx.Err() != nil || !t.mayStep() { // it waited for its turn meanwhile
			done()
			t.completed()
			continue
		}
		began := t.now()
		err := t.step(ctx, began)
		done()
		if errors.Is(err, trainer.ErrLost) {
			if err := t.lost(ctx, &gone, err); err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, trainer.ErrNoBatch) {
			if !lacking {
				lacking = true
				t.cfg.Lacking(err)
			}
			t.setLacks(true)
			t.pause(ctx, dataAfter, &t.account.Data)
			continue
		}
		if err != nil {
			return err
		}
		lacking = false
		t.setLacks(false)
		if gone.restarts > 0 {
			gone.restarts = 0
			t.cfg.Back()
		}
		t.keepPace(ctx, began)
		t.save()
	}
	t.boundary()
	return nil
}

func (t *Thread) tune(ctx context.Context) error {
	if t.cfg.Tune == nil {
		return nil
	}
	began := t.now()
	err := t.cfg.Tune(ctx)
	if err == nil {
		t.spend(&t.account.Joining, began)
	}
	return err
}

// save has the saver take what is due.
func (t *Thread) save() {
	if !t.saver.due() || !t.mayStep() {
		return
	}
	done := t.turn()
	began := t.now()
	t.saver.save()
	done()
	t.spend(&t.account.Save, began)
}

// outage is how often a trainer that is gone began again without a step, and what it is gone by until it begins.
type outage struct {
	restarts int
	known    error
}

// lost has a trainer that is gone by err begin again. It returns an error where that is of no use.
func (t *Thread) lost(ctx context.Context, gone *outage, err error) error {
	if gone.known == nil || !errors.Is(err, gone.known) {
		gone.known = err
		t.reportLost(ctx, err)
		if gone.restarts++; t.cfg.Absent == nil && t.steps == 0 && gone.restarts >= hopeless {
			return fmt.Errorf("%w (%d times, and it has taken no step)", err, gone.restarts)
		}
	}
	if t.restart(ctx, gone.restarts-1) {
		gone.known = nil
	}
	return nil
}

// cutBy is no error where ctx ended what failed.
func cutBy(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Pauses before a trainer that is gone begins again: the first, and the longest. One that dies
// at once each time takes no more of the machine than that.
const (
	restartAfter = time.Second
	restartMost  = time.Minute
)

// hopeless is how often a trainer may go before its first step: what fails each time from the
// start is for its user to mend.
const hopeless = 3

// restart has a trainer that is gone begin again, after a pause that doubles each time. What
// the loop asks for is done meanwhile, except while the trainer starts. It reports whether the
// trainer has begun: where no step is allowed that waits.
func (t *Thread) restart(ctx context.Context, before int) (begun bool) {
	pause := min(restartAfter<<min(before, 10), restartMost)
	for ctx.Err() == nil {
		t.pause(ctx, pause, &t.account.Gone)
		if !t.mayStep() {
			return false // the next step finds it gone
		}
		if t.cfg.Absent != nil && t.cfg.Absent() {
			pause = restartAfter
			continue
		}
		done := t.turn()
		began := t.now()
		starting, _ := t.enter(ctx)
		err := t.cfg.Trainer.Restart(starting)
		cut := starting.Err() != nil
		t.spend(&t.account.Gone, began)
		t.exit()
		if done(); err == nil || cut {
			return err == nil
		}
		t.reportLost(ctx, err)
		pause = min(2*pause, restartMost)
	}
	return false
}

// dataAfter is the pause before a step is tried again whose tokens were not there: little
// beside the time that a shard travels.
const dataAfter = 250 * time.Millisecond

// pause does what the loop asks for, for some time in which no step is taken, and books it.
func (t *Thread) pause(ctx context.Context, d time.Duration, account *float64) {
	began := t.now()
	for left := d; left > 0 && ctx.Err() == nil; left = d - t.since(began) {
		t.idle(ctx, left, account)
	}
}

func (t *Thread) begin(at timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun, t.booked = at, at
}

// boundary does what the loop asked for since the last step, unless that is done in the background.
func (t *Thread) boundary() {
	if t.background != nil {
		return
	}
	t.commands.Each(func(do func()) { do() })
}

// asked holds a token while there may be something to do at the boundary.
func (t *Thread) asked() <-chan struct{} {
	if t.background != nil {
		return nil
	}
	return t.commands.Ready()
}

// turn waits until the trainer is this thread's to ask, and few commands wait for it. It returns what ends that.
func (t *Thread) turn() (done func()) {
	if t.background == nil {
		return func() {}
	}
	began := t.now()
	t.background.catchUp()
	<-t.background.turn
	t.mu.Lock()
	doing := t.doing
	t.mu.Unlock()
	if doing == nil {
		doing = &t.account.Adopt // what commands do beside drafts is done with the local parameters too
	}
	t.spend(doing, began)
	return func() { t.background.turn <- struct{}{} }
}

// does says what is being done, and returns what ends it.
func (t *Thread) does(what *float64) (done func()) {
	if t.background == nil {
		began := t.now()
		return func() { t.spend(what, began) }
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doing = what
	return func() {}
}

// reportLost has a trainer that is gone accounted for. Nothing that was asked for before sees the next one.
func (t *Thread) reportLost(ctx context.Context, err error) {
	if t.background == nil {
		t.cfg.Lost(err)
		return
	}
	told := make(chan struct{})
	t.commands.Put(func() {
		defer close(told)
		t.cfg.Lost(err)
	})
	select {
	case <-told:
	case <-ctx.Done():
	}
}

// wait blocks while there is nothing to step for: before the node is in, and
// when the budget is spoken for. It reports whether to step.
func (t *Thread) wait(ctx context.Context) bool {
	t.mu.Lock()
	may, joining, paused := t.may, t.steps == 0 && !t.started, t.paused
	t.stepping = may
	t.mu.Unlock()
	if may {
		return true
	}
	began := t.now()
	select {
	case <-ctx.Done():
	case <-t.asked():
	case <-t.woken:
	}
	switch {
	case paused:
		t.spend(&t.account.Paused, began)
	case joining:
		t.spend(&t.account.Joining, began)
	default:
		t.spend(&t.account.Ending, began)
	}
	return false
}

// step takes one step. One that was cut took time and did nothing.
func (t *Thread) step(ctx context.Context, began timestamp) error {
	ctx, lr := t.enter(ctx)
	res, err := t.cfg.Trainer.Step(ctx, lr)
	ended := ctx.Err() != nil
	t.exit()
	if err == nil {
		t.cfg.Stepped(res, max(t.since(began), t.leastTime()))
		t.record(res, lr)
	}
	account := &t.account.Step
	if errors.Is(err, trainer.ErrNoBatch) {
		account = &t.account.Data
	}
	t.spend(account, began)
	t.completed()
	if ended {
		return nil
	}
	return err
}

// enter begins a step: its context, which CutStep ends, and its learning rate.
func (t *Thread) enter(ctx context.Context) (context.Context, float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, t.cut = context.WithCancel(ctx)
	return ctx, t.cfg.Schedule.At(t.fraction)
}

// exit ends the context of a step.
func (t *Thread) exit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut()
	t.cut = nil
}

// completed says that what was stepped has been told.
func (t *Thread) completed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stepping = false
}

func (t *Thread) record(res trainer.StepResult, lr float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps++
	t.tokens += uint64(res.Tokens)
	t.rate = lr
	t.loss = MeanLoss(t.loss, res.Loss)
}

// keepPace waits for what is left of the least time of a step, but does at once
// what the loop asks for meanwhile: no step is taken.
func (t *Thread) keepPace(ctx context.Context, began timestamp) {
	for left := t.leastTime() - t.since(began); left > 0 && ctx.Err() == nil; left = t.leastTime() - t.since(began) {
		t.idle(ctx, left, &t.account.Paced)
	}
}

// idle waits until the loop asks for something, for so long at most. It books the time, and does what was asked for.
func (t *Thread) idle(ctx context.Context, d time.Duration, account *float64) {
	began := t.now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-t.asked():
	case <-t.woken:
	}
	t.spend(account, began)
	t.boundary()
}

func (t *Thread) spend(where *float64, since timestamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.booked = t.now()
	*where += (t.booked.awake - since.awake).Seconds()
}

// Learner is a learner whose work is booked in the account of its thread, where that waits for it.
type Learner struct {
	*outer.Learner
	t *Thread
}

// Learner has commands work with a learner of the values that a trainer has.
func (t *Thread) Learner(l *outer.Learner, values trainer.Trainer) Learner {
	l.Use(device{values, t.background})
	return Learner{l, t}
}

// Draft implements replica.Learner.
func (l Learner) Draft(fragment int) (outer.Draft, error) {
	defer l.t.does(&l.t.account.Publish)()
	d, err := l.Learner.Draft(fragment)
	if errors.Is(err, outer.ErrDevice) {
		l.t.cfg.Lost(err)
	}
	return d, err
}

// Follow implements replica.Learner.
func (l Learner) Follow(a outer.Adopt) (outer.Loss, error) {
	defer l.t.does(&l.t.account.Adopt)()
	return l.Learner.Follow(a)
}

// Stats is what the training thread says of itself.
type Stats struct {
	Steps     int64
	Tokens    uint64
	Loss      float64 // running mean
	Rate      float64 // learning rate of the last step
	PerSecond float64 // tokens
	Account   status.TimeAccount
}

// Stats is what the thread has done until now.
func (t *Thread) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	active := t.active
	if t.may {
		active += t.since(t.trained)
	}
	p := Stats{Steps: t.steps, Tokens: t.tokens, Loss: t.loss, Rate: t.rate}
	p.PerSecond = t.recent(active)
	p.Account = t.balanced()
	return p
}

// mark is how much was trained in so much time.
type mark struct {
	active time.Duration
	tokens uint64
	steps  int64
}

// Two marks are so far apart at least. The speed is that of the last 30 to 60 s, or of as many steps that take longer: what slows a
// machine down, such as another program on it, shows soon, and a delta that is published does not.
const (
	markEvery = 30 * time.Second
	markSteps = 4
)

// recent is the speed lately, in tokens per second, after so much time of training.
func (t *Thread) recent(active time.Duration) float64 {
	if last := t.marks[1]; active-last.active >= markEvery && t.steps-last.steps >= markSteps {
		t.marks = [2]mark{last, {active, t.tokens, t.steps}}
	}
	from := t.marks[0]
	if active <= from.active {
		return 0
	}
	return float64(t.tokens-from.tokens) / (active - from.active).Seconds()
}

// balanced is the time account up to when it was last booked. While the thread
// is in the middle of something, the time that it already took is not waiting.
func (t *Thread) balanced() status.TimeAccount {
	a := t.account
	awake := (t.booked.awake - t.begun.awake).Seconds()
	a.Asleep = (t.booked.asleep - t.begun.asleep).Seconds()
	a.Total = awake + a.Asleep
	a.Waiting = max(0, awake-a.Step-a.Paced-a.Publish-a.Adopt-a.Save-a.Evaluate-a.Joining-a.Ending-a.Paused-a.Gone-a.Data)
	return a
}

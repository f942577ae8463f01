package testnet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/optimizer/trainer"
	"atoll/tensor"
	"atoll/testnet/baseline"
	"atoll/testnet/fault"
	"atoll/testnet/nodelink"
)

// Errors that callers decide on.
var (
	// ErrTimeout says that the run did not end in the time it was given. It is a
	// context.DeadlineExceeded as well.
	ErrTimeout error = timeoutError{}
	// ErrStopped says that the caller ended the run before its end.
	ErrStopped = errors.New("the testnet was stopped")
)

type timeoutError struct{}

func (timeoutError) Error() string        { return "the testnet took too long" }
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// world is a testnet while it runs. The goroutine of Run owns it.
type world struct {
	cfg         Config
	genesis     genesis.Genesis
	data        data
	coordinator *baseline.Coordinator // of a baseline; nil in a world of atoll
	calibration Calibration
	chaos       []*scheduled
	links       nodelink.Set
	learners    choices
	precisions  choices
	precision   string     // of nodes that are not told which
	chanceOver  bool       // chance does nothing any more
	rng         *rand.Rand // which node Any takes
	began       time.Time
	limit       timeLimit
	ended       time.Time // when a node saw that the run was over
	members     []*member
	exits       chan exit
	running     int
	link        string // as last written
	screen      *screen
	counts      counts
	progress    progress
	folds       stall
	recoveries  []*recovery
	corrupted   []corruption
	ending      error // why the world is being torn down, nil while all is well
	killAt      time.Time
	temporary   bool // nobody chose the folder
}

// counts are what chaos did.
type counts struct{ joins, leaves, kills, pauses, partitions, links, learners, liars int }

// Run runs a world to its end and returns the report, which is also in the
// world's folder. An error means that there is no report: a bad Config, a node
// that failed, ErrTimeout, or ErrStopped after the end of ctx. A report whose
// checks failed is no error; see Report.Passed.
func Run(ctx context.Context, cfg Config) (Report, error) {
	w, err := build(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	if w.cfg.Baseline == Atoll {
		return w.run(ctx)
	}
	if err := w.startCoordinator(); err != nil {
		return Report{}, err
	}
	r, err := w.run(ctx)
	return r, errors.Join(err, w.coordinator.Close())
}

func (w *world) run(ctx context.Context) (Report, error) {
	if err := w.live(ctx); err != nil {
		return Report{}, fmt.Errorf("%w (logs and ledgers are in %s, %s)", err, w.cfg.Dir, status.Bytes(float64(folderSize(w.cfg.Dir))))
	}
	if w.coordinator != nil {
		return w.baselineReport(ctx)
	}
	return w.report(ctx)
}

// build does everything that comes before the first process.
func build(ctx context.Context, cfg Config) (*world, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	chaos, err := planChaos(cfg)
	if err != nil {
		return nil, err
	}
	learners, err := parseLearners(cfg.Learner)
	if err != nil {
		return nil, err
	}
	precisions, err := parsePrecisions(cfg.Precision)
	if err != nil {
		return nil, err
	}
	links, err := parseLinks(cfg.Link)
	if err != nil {
		return nil, err
	}
	w := &world{cfg: cfg, chaos: chaos, links: links, learners: learners, precisions: precisions, exits: make(chan exit), rng: rand.New(rand.NewPCG(cfg.Seed, 0))}
	if w.data, err = openData(cfg); err != nil {
		return nil, err
	}
	if w.genesis, err = genesisOf(cfg, w.data, time.Now()); err != nil {
		return nil, err
	}
	w.temporary = cfg.Dir == ""
	if w.cfg.Dir, err = makeDir(cfg.Dir); err != nil {
		return nil, err
	}
	if err := os.WriteFile(w.path(genesisFile), w.genesis.Encode(), 0o644); err != nil {
		return nil, fmt.Errorf("write genesis: %w", err)
	}
	w.screen = newScreen(cfg.Out, cfg.Terminal)
	w.screen.say("testnet of %s in %s%s", plural(cfg.Nodes, "node"), w.cfg.Dir, baselineText(cfg.Baseline))
	if text, is := w.data.(plainText); is && text.Note() != "" {
		w.screen.say("text: %s", text.Note())
	}
	return w, w.setPace(ctx)
}

// setPace calibrates how fast the learners step, those that join later
// included.
func (w *world) setPace(ctx context.Context) error {
	among, err := w.allPrecisions()
	if err != nil {
		return err
	}
	if w.cfg.Pace > 0 && !w.trainsItself() {
		w.precision, w.calibration = among[0].String(), paceOfOthers(w.cfg.Pace, runtime.GOMAXPROCS(0))
		w.screen.say("at full speed a step begins every %.0f ms (%s)", w.calibration.PaceMs, w.calibration.Note)
		return nil
	}
	w.screen.say("measuring how long a step takes here")
	step, precision, err := calibrate(ctx, w.genesis, among)
	if err != nil {
		return err
	}
	w.precision = precision.String()
	var divisors []float64
	for i := range w.cfg.Nodes + w.joins() {
		divisors = append(divisors, w.cfg.divisor(i))
	}
	cores := runtime.GOMAXPROCS(0)
	if w.cfg.Pace > 0 {
		w.calibration = paceAsked(w.cfg.Pace, step, divisors, cores)
	} else {
		w.calibration = paceFor(step, divisors, cores)
	}
	every := max(w.calibration.PaceMs, w.calibration.StepMs)
	w.screen.say("a step takes %.0f ms on one of %d cores; at full speed one begins every %.0f ms", w.calibration.StepMs, cores, every)
	w.screen.say("(%s)", w.calibration.Note)
	return nil
}

// trainsItself says that the built-in trainer trains on some node.
func (w *world) trainsItself() bool {
	for i := range w.cfg.Nodes + w.joins() {
		if !w.learners.inProcess(i) {
			return true
		}
	}
	return false
}

// allPrecisions are those to calibrate among: what all nodes are told, or f32, the slower one, where they differ. Baselines
// train in f32.
func (w *world) allPrecisions() ([]tensor.Precision, error) {
	name := w.precisions.of(0)
	for i := range w.cfg.Nodes + w.joins() {
		if w.cfg.Baseline != Atoll || w.precisions.of(i) != name {
			name = tensor.F32.String()
		}
	}
	among, note, err := trainer.Precisions(name)
	if note != "" {
		w.screen.say("every node %s", note)
	}
	return among, err
}

// precisionOf is what a node is told: all that choose get the same, measured once and in processor time.
func (w *world) precisionOf(i int) string {
	if name := w.precisions.of(i); name != "" && name != trainer.AutoPrecision {
		return name
	}
	return w.precision
}

func (w *world) joins() int {
	n := 0
	for _, e := range w.chaos {
		if e.Verb == fault.Join {
			n++
		}
	}
	return n
}

func (w *world) path(name string) string { return filepath.Join(w.cfg.Dir, name) }

// pollEvery is how often the nodes are asked how they are; chaos and the
// screen follow from it.
const pollEvery = 500 * time.Millisecond

// leaveWithin is how long nodes that were asked to leave may take before they
// are killed: their own limit for it and some more.
const leaveWithin = 15 * time.Second

// live runs the nodes until the last has ended.
func (w *world) live(ctx context.Context) error {
	w.began = time.Now()
	w.limit = newTimeLimit(w.cfg.Timeout, w.roundTime(), w.began)
	defer w.screen.clear()
	if err := w.startNode(w.cfg.Nodes > 1); err != nil {
		return err
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	done, abort := ctx.Done(), w.cfg.Abort
	for w.running > 0 || w.startDue() {
		select {
		case <-done:
			done = nil
			w.tearDown(ErrStopped)
		case <-abort:
			abort = nil
			w.fail(ErrStopped)
		case <-tick.C:
			w.tick(ctx, time.Now())
		case e := <-w.exits:
			w.exited(e)
		}
	}
	w.notifyWatchers()
	return w.ending
}

// tick looks at the nodes and does what is due.
func (w *world) tick(ctx context.Context, now time.Time) {
	w.poll(ctx)
	if w.ending == nil {
		w.check(w.startOthers())
		w.check(w.writeLink())
		w.check(w.doChaos(ctx, now))
		w.check(w.instruct(ctx))
		w.check(w.wakeAtEnd())
		w.observe(now)
		w.addCapacity(now)
		w.check(w.limit.exceeded(now, w.foldedInSum()))
	}
	if !w.killAt.IsZero() && now.After(w.killAt) {
		w.killAll()
	}
	w.screen.show(w.view(now))
	w.notifyWatchers()
}

// wakeAtEnd lets the nodes go that are still paused when the run is over: nothing
// will resume them any more, and the world would wait for them.
func (w *world) wakeAtEnd() error {
	if !w.finished() {
		return nil
	}
	for _, m := range w.members {
		if l := m.current(); l != nil && l.paused && !l.asked {
			w.screen.say("the run ended while %s was paused: it is woken and asked to leave", m.name())
			if err := l.leave(); err != nil {
				return err
			}
		}
	}
	return nil
}

// check fails the world on an error.
func (w *world) check(err error) {
	if err != nil {
		w.fail(err)
	}
}

// fail ends the world at once.
func (w *world) fail(err error) {
	w.ending = errors.Join(w.ending, err)
	w.killAll()
}

// tearDown asks every node to leave in order, and kills those that do not.
func (w *world) tearDown(err error) {
	w.ending = errors.Join(w.ending, err)
	w.killAt = time.Now().Add(leaveWithin)
	w.screen.say("asking %s to leave; interrupt again to kill", plural(w.running, "node"))
	for _, m := range w.members {
		if l := m.current(); l != nil {
			w.check(l.leave())
		}
	}
}

func (w *world) killAll() {
	for _, m := range w.members {
		if l := m.current(); l != nil {
			w.ending = errors.Join(w.ending, l.kill())
		}
	}
}

// exited notes the end of a process. One that nobody asked for, before the end
// of the run, fails the world.
func (w *world) exited(e exit) {
	w.running--
	w.check(e.member.end(e.life, time.Now()))
	switch {
	case e.life.killed || w.ending != nil:
	case e.err != nil:
		w.fail(fmt.Errorf("%s died: %w; its log ends with:\n%s", e.member.name(), e.err, logTail(e.member.dir)))
	case !e.life.final:
		w.fail(fmt.Errorf("%s ended without a last status; its log ends with:\n%s", e.member.name(), logTail(e.member.dir)))
	case e.life.last.State == baseline.CutOff: // of a baseline: the others ended the run without it
	case !e.life.asked && !e.life.last.Finished:
		w.fail(fmt.Errorf("%s ended before the run was over; its log ends with:\n%s", e.member.name(), logTail(e.member.dir)))
	}
}

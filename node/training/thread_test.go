package training

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"atoll/node/clock"
	"atoll/node/inspect/ledgertest"
	"atoll/node/status"
	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
)

// fakeTrainer takes steps that last a given time and move every parameter.
type fakeTrainer struct {
	params []float32
	takes  time.Duration
	steps  int64
	rates  []float64
	inside atomic.Bool

	mu       sync.Mutex
	fails    error // of every step
	refuses  int   // so many restarts
	restarts []time.Time
}

const fakeTokens = 32

func (f *fakeTrainer) Params() []float32             { return f.params }
func (f *fakeTrainer) SaveState() (io.Reader, error) { return strings.NewReader("state"), nil }
func (f *fakeTrainer) LoadState(io.Reader) error     { return nil }
func (f *fakeTrainer) Steps() int64                  { return f.steps }

func (f *fakeTrainer) Flush([]optimizer.Span) error { return nil }
func (f *fakeTrainer) Load([]optimizer.Span)        {}

// fail has every step fail until a restart, and the next so many restarts.
func (f *fakeTrainer) fail(err error, refuses int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails, f.refuses = err, refuses
}

func (f *fakeTrainer) restarted() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.restarts)
}

// Restart fails as long as the trainer refuses.
func (f *fakeTrainer) Restart(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.restarts = append(f.restarts, time.Now())
	if f.refuses > 0 {
		f.refuses--
		return fmt.Errorf("no GPU: %w", trainer.ErrLost)
	}
	f.fails = nil
	return nil
}

func (f *fakeTrainer) Step(ctx context.Context, lr float64) (trainer.StepResult, error) {
	f.inside.Store(true)
	defer f.inside.Store(false)
	select {
	case <-ctx.Done():
		return trainer.StepResult{}, ctx.Err()
	case <-time.After(f.takes):
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails != nil {
		return trainer.StepResult{}, f.fails
	}
	f.steps++
	f.rates = append(f.rates, lr)
	for i := range f.params {
		f.params[i] += 1e-3
	}
	return trainer.StepResult{Tokens: fakeTokens, Loss: 5}, nil
}

// bench is a training thread on a fake trainer, in fake time.
type bench struct {
	*Thread
	learner Learner
	fake    *fakeTrainer
	told    atomic.Int64 // steps told to the loop
	saves   atomic.Int64
	ended   chan error
	cancel  context.CancelFunc
	blind   context.CancelFunc // nobody looks at the clock any more: as while the process sleeps
	params  outer.Params
	plan    outer.Plan
	tips    []*outer.Tip
	losses  atomic.Int64
	lacked  atomic.Int64 // times that it was told of a step without data
}

func newBench(t *testing.T, takes, pace time.Duration) *bench {
	t.Helper()
	b := makeBench(t, takes, pace)
	b.learns()
	b.start(t)
	return b
}

// learns gives the bench its learner.
func (b *bench) learns() {
	b.learner = Learner{outer.NewLearner(b.params, b.plan, b.fake.params, b.tips, nil), b.Thread}
}

// makeBench makes a bench that has no learner yet.
func makeBench(t *testing.T, takes, pace time.Duration) *bench {
	t.Helper()
	g := ledgertest.Genesis(1 << 40)
	b := &bench{params: g.OuterParams(), plan: g.Plan(), tips: g.Tips(), ended: make(chan error, 1)}
	b.fake = &fakeTrainer{params: make([]float32, g.Model.Params()), takes: takes}
	b.Thread = New(Config{
		Trainer: b.fake, Pace: pace, Clock: clock.New(), Schedule: optimizer.Schedule{Peak: 1, FinalFraction: 0.1, WarmupFraction: 0.1},
		Stepped: func(res trainer.StepResult, _ time.Duration) {
			b.told.Add(1)
			b.learner.Stepped(res.Tokens, make([]uint32, len(b.plan)))
		},
		Back: func() {}, Lost: func(error) { b.losses.Add(1) }, Lacking: func(error) { b.lacked.Add(1) },
		Save: Save{State: b.fake.SaveState, Background: func(do func()) { go do() }, Write: func(state io.Reader) error {
			_, err := io.ReadAll(state)
			if err == nil {
				b.saves.Add(1)
			}
			return err
		}},
		Report: func(_ string, err error) {
			if err != nil {
				t.Error(err)
			}
		},
	})
	return b
}

// start starts the thread.
func (b *bench) start(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b.cancel = cancel
	watched, blind := context.WithCancel(ctx)
	b.blind = blind
	go b.cfg.Clock.Look(watched)
	go func() { b.ended <- b.Run(ctx) }()
}

// draft has the learner publish between two steps.
func (b *bench) draft(fragment int, done func(outer.Draft, error)) {
	b.Do(func() { done(b.learner.Draft(fragment)) })
}

// after lets time pass and returns what the thread says then.
func (b *bench) after(d time.Duration) Stats {
	time.Sleep(d)
	synctest.Wait()
	return b.Stats()
}

func (b *bench) stop(t *testing.T) {
	t.Helper()
	b.cancel()
	if err := <-b.ended; err != nil {
		t.Error(err)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

func TestTrainingKeepsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 30*time.Millisecond, 100*time.Millisecond)
		b.SetMay(true)
		p := b.after(1050 * time.Millisecond)
		if p.Steps != 11 || p.Tokens != 11*fakeTokens || b.told.Load() != 11 {
			t.Errorf("%d steps, %d tokens, %d told after 1.05 s at a pace of 0.1 s", p.Steps, p.Tokens, b.told.Load())
		}
		if a := p.Account; !near(a.Step, 11*0.03) || !near(a.Paced, 10*0.07) || a.Waiting != 0 || !near(a.Total, a.Step+a.Paced) {
			t.Errorf("account %+v", a)
		}
		if p.Loss != 5 || !near(p.PerSecond, 11*fakeTokens/1.05) {
			t.Errorf("loss %v, %v tokens/s", p.Loss, p.PerSecond)
		}
		b.stop(t)
	})
}

// The speed is that of the last minute, whatever was before, and one of steps that take longer is known as well.
func TestSpeedIsOfLately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 30*time.Millisecond, 100*time.Millisecond)
		b.SetMay(true)
		for _, pace := range []time.Duration{100 * time.Millisecond, time.Second, 50 * time.Millisecond, 90 * time.Second} {
			b.SetPace(pace)
			var p Stats
			for range max(90, int(10*pace.Seconds())) {
				p = b.after(time.Second)
			}
			if want := fakeTokens / pace.Seconds(); p.PerSecond < 0.6*want || p.PerSecond > 1.7*want {
				t.Errorf("%v tokens/s at a pace of %v, want about %v", p.PerSecond, pace, want)
			}
		}
		b.stop(t)
	})
}

// A new pace is kept at once, also in the pause of a slower one.
func TestTrainingChangesItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 10*time.Millisecond, time.Hour)
		b.SetMay(true)
		b.after(time.Second)
		b.SetPace(100 * time.Millisecond)
		if p := b.after(time.Second); p.Steps != 11 {
			t.Errorf("%d steps in the second after the pace was set", p.Steps)
		}
		b.stop(t)
	})
}

func TestTrainingWaitsUntilItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 10*time.Millisecond, 0)
		if p := b.after(2 * time.Second); p.Steps != 0 || p.Account.Total != 0 || !b.AtRest() {
			t.Errorf("before it may: %+v", p)
		}
		b.SetMay(true)
		b.after(95 * time.Millisecond)
		b.SetMay(false)
		p := b.after(time.Second)
		b.SetMay(false) // wakes it: what it waited is booked
		p = b.after(0)
		if p.Steps != 10 || !near(p.Account.Joining, 2) || !near(p.Account.Ending, 0.995) || !near(p.Account.Step, 0.1) {
			t.Errorf("after it may not: %+v", p)
		}
		b.stop(t)
	})
}

// What the thread waits for its owner has a column of its own, before its first step as after.
func TestTrainingIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 10*time.Millisecond, 0)
		b.SetPaused(true)
		b.after(3 * time.Second)
		b.SetPaused(false)
		b.after(2 * time.Second)
		b.SetMay(true)
		b.after(95 * time.Millisecond)
		b.SetMay(false)
		b.SetPaused(true)
		b.after(4 * time.Second)
		b.SetPaused(true) // books what it waited
		a := b.after(0).Account
		if !near(a.Joining, 2) || math.Abs(a.Paused-7) > 0.01 || !near(a.Step, 0.1) || a.Ending > 0.01 || a.Waiting > 1e-6 {
			t.Errorf("account %+v", a)
		}
		b.stop(t)
	})
}

// A leaver must know of the step that was under way when it was told to stop.
func TestTrainingRestsAfterItsStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, time.Minute, 0)
		b.SetMay(true)
		b.after(time.Second)
		b.SetMay(false)
		if b.after(time.Second); b.AtRest() || b.told.Load() != 0 {
			t.Errorf("in a step: at rest %v, %d told", b.AtRest(), b.told.Load())
		}
		if b.after(time.Minute); !b.AtRest() || b.told.Load() != 1 {
			t.Errorf("after the step: at rest %v, %d told", b.AtRest(), b.told.Load())
		}
		b.stop(t)
	})
}

// A leaver does not wait for a long step: it publishes what came before.
func TestTrainingCutsAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, time.Minute, 0)
		b.CutStep() // none is under way
		b.SetMay(true)
		b.after(90 * time.Second)
		b.SetMay(false)
		var draft outer.Draft
		b.draft(0, func(d outer.Draft, err error) { draft = d })
		if b.after(time.Second); b.AtRest() {
			t.Error("at rest in a step")
		}
		b.CutStep()
		p := b.after(0)
		if !b.AtRest() || p.Steps != 1 || b.told.Load() != 1 || draft.Steps != 1 || draft.Tokens != fakeTokens {
			t.Errorf("at rest %v after %d steps, %d told, %d drafted", b.AtRest(), p.Steps, b.told.Load(), draft.Steps)
		}
		if !near(p.Account.Step, 91) || p.Account.Waiting != 0 {
			t.Errorf("account %+v", p.Account)
		}
		b.SetMay(true) // the next one is not cut
		if p := b.after(61 * time.Second); p.Steps != 2 {
			t.Errorf("%d steps", p.Steps)
		}
		b.stop(t)
	})
}

// A sleep is booked as such, wherever it comes: in a step, at its pace, or while
// there is nothing to do. A step that it cuts is as long as the work in it.
func TestTrainingSleeps(t *testing.T) {
	for _, c := range []struct {
		name        string
		takes, pace time.Duration
		may         bool
		want        status.TimeAccount
	}{
		{"in a step", 2 * time.Minute, 0, true, status.TimeAccount{Step: 30, Asleep: 90, Total: 120}},
		{"at its pace", 10 * time.Second, 2 * time.Minute, true, status.TimeAccount{Step: 10, Paced: 20, Asleep: 90, Total: 120}},
		{"joining", time.Second, 0, false, status.TimeAccount{Joining: 30, Asleep: 90, Total: 120}},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, c.takes, c.pace)
			var took time.Duration
			b.cfg.Stepped = func(_ trainer.StepResult, d time.Duration) { took = d }
			b.SetMay(c.may)
			b.after(30 * time.Second)
			b.blind()
			b.after(90 * time.Second)
			b.SetMay(false) // wakes it: what it waited is booked
			a := b.after(0).Account
			b.stop(t)
			if a != c.want {
				t.Errorf("%s: %+v, want %+v", c.name, a, c.want)
			}
			if c.pace == 0 && c.may && took != 30*time.Second {
				t.Errorf("%s: the step took %v", c.name, took)
			}
		})
	}
}

func TestTrainingHearsCommandsBetweenSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 30*time.Millisecond, 100*time.Millisecond)
		start := time.Now()
		b.SetMay(true)
		b.after(time.Millisecond)
		var draft outer.Draft
		var drafted time.Duration
		b.draft(0, func(d outer.Draft, err error) {
			if err != nil || b.fake.inside.Load() {
				t.Errorf("draft inside a step %v: %v", b.fake.inside.Load(), err)
			}
			draft, drafted = d, time.Since(start)
		})
		b.after(49 * time.Millisecond)
		if drafted != 30*time.Millisecond || draft.Steps != 1 || draft.Tokens != fakeTokens || len(draft.Payload) == 0 {
			t.Errorf("drafted after %v: %d steps, %d tokens", drafted, draft.Steps, draft.Tokens)
		}
		// In the pause of a slow pace a new tip is adopted at once.
		next := *b.tips[1]
		next.Round = 1
		adopted := false
		b.Do(func() {
			if _, err := b.learner.Follow(outer.Adopt{Fragment: 1, Tip: &next}); err != nil {
				t.Error(err)
			}
			adopted = true
		})
		b.after(0)
		b.stop(t)
		if !adopted || b.fake.steps != 1 {
			t.Errorf("adopted %v after %d steps", adopted, b.fake.steps)
		}
	})
}

func TestTrainingCheckpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 300*time.Millisecond, 0)
		b.SetMay(true)
		b.after(35 * time.Second)
		if b.saves.Load() != 3 {
			t.Errorf("%d checkpoints in 35 s, want one every %v", b.saves.Load(), checkpointEvery)
		}
		b.stop(t)
	})
}

func TestTrainingRateFollowsTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 10*time.Millisecond, 0)
		b.SetFraction(0.1)
		b.SetMay(true)
		b.after(15 * time.Millisecond)
		b.SetFraction(1)
		p := b.after(20 * time.Millisecond)
		b.stop(t)
		first, last := b.fake.rates[0], b.fake.rates[len(b.fake.rates)-1]
		if !near(first, 1) || !near(last, 0.1) || p.Rate != last {
			t.Errorf("rates %v, shown %v", b.fake.rates, p.Rate)
		}
	})
}

func TestTrainingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, time.Minute, 0)
		b.SetMay(true)
		b.after(time.Second)
		b.stop(t) // inside a step: no error, and the step does not count
		if b.told.Load() != 0 || b.Stats().Steps != 0 {
			t.Errorf("%d steps told", b.told.Load())
		}
		b = newBench(t, time.Millisecond, 0)
		broken := errors.New("out of memory")
		b.fake.fail(broken, 0)
		b.SetMay(true)
		if err := <-b.ended; !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
		b.cancel()
	})
}

// A trainer that is tuned takes no step before, and the time counts as that of a node that joins. To end it is no error.
func TestTrainingIsTunedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := makeBench(t, 10*time.Millisecond, 0)
		b.learns()
		b.cfg.Tune = func(ctx context.Context) error {
			select {
			case <-time.After(3 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		b.start(t)
		b.SetMay(true)
		if p := b.after(2 * time.Second); p.Steps != 0 {
			t.Errorf("%d steps before it is tuned", p.Steps)
		}
		p := b.after(1095 * time.Millisecond)
		if a := p.Account; p.Steps != 9 || !near(a.Joining, 3) || !near(a.Step, 0.09) || a.Waiting > 1e-6 {
			t.Errorf("%d steps, account %+v", p.Steps, a)
		}
		b.stop(t)
		b = makeBench(t, time.Millisecond, 0)
		b.cfg.Tune = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		b.start(t)
		b.after(time.Second)
		b.stop(t)
		broken := errors.New("out of memory")
		b.cfg.Tune = func(context.Context) error { return broken }
		if err := b.Run(t.Context()); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	})
}

// A trainer that is gone begins again, after pauses that double while it cannot, and what the
// loop asks for is done meanwhile.
func TestTrainingRestartsALostTrainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 100*time.Millisecond, 0)
		b.SetMay(true)
		b.after(250 * time.Millisecond)
		b.fake.fail(fmt.Errorf("killed: %w", trainer.ErrLost), 2)
		died := time.Now()
		asked := false
		b.Do(func() { asked = true })
		if b.after(500 * time.Millisecond); !asked || b.losses.Load() != 1 {
			t.Errorf("half a second later: asked %t, %d losses", asked, b.losses.Load())
		}
		p := b.after(10 * time.Second)
		for i, want := range []time.Duration{1, 3, 7} {
			if at := b.fake.restarted()[i].Sub(died); at < want*time.Second || at > want*time.Second+100*time.Millisecond {
				t.Errorf("restart %d after %v, want %v s", i, at, int(want))
			}
		}
		if b.losses.Load() != 3 || p.Steps < 30 {
			t.Errorf("%d losses, %d steps", b.losses.Load(), p.Steps)
		}
		b.stop(t)
	})
}

// A leaver does not wait for a trainer that cannot begin again.
func TestTrainingLeavesWithoutALostTrainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 100*time.Millisecond, 0)
		b.fake.fail(fmt.Errorf("killed: %w", trainer.ErrLost), 1<<30)
		b.SetMay(true)
		b.after(20 * time.Second)
		b.SetMay(false)
		tried := len(b.fake.restarted())
		if b.after(3 * time.Minute); !b.AtRest() || len(b.fake.restarted()) != tried {
			t.Errorf("at rest %t, %d more restarts", b.AtRest(), len(b.fake.restarted())-tried)
		}
		b.stop(t)
	})
}

// A step whose tokens are not there is tried again until they are. That ends nothing, is told
// once, and is booked apart from steps.
func TestTrainingWaitsForData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 100*time.Millisecond, 0)
		b.SetMay(true)
		b.after(time.Second)
		before := b.fake.steps
		b.fake.fail(fmt.Errorf("shard 12: %w", trainer.ErrNoBatch), 0)
		asked := false
		b.Do(func() { asked = true })
		p := b.after(10 * time.Second)
		if !asked || b.lacked.Load() != 1 || b.fake.steps > before+1 {
			t.Errorf("asked %t, told %d times, %d steps", asked, b.lacked.Load(), b.fake.steps-before)
		}
		if a := p.Account; a.Data < 9 || a.Data > 10.5 || a.Waiting > 0.2 {
			t.Errorf("%.1f s are booked as waiting for data, %.1f s as waiting for peers; want 10 s and none", a.Data, a.Waiting)
		}
		b.fake.fail(nil, 0)
		if p := b.after(5 * time.Second); p.Steps < before+40 || b.losses.Load() != 0 {
			t.Errorf("%d steps after the data came, %d losses", p.Steps-before, b.losses.Load())
		}
		b.stop(t)
	})
}

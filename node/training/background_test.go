package training

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
)

// farTrainer is a fakeTrainer that steps values of its own.
type farTrainer struct {
	*fakeTrainer
	slab []float32
}

func (f farTrainer) Params() []float32 { return f.slab }

func (f farTrainer) Flush(pieces []optimizer.Span) error {
	f.atRest()
	for _, p := range pieces {
		copy(f.slab[p.Offset:p.Offset+p.Len], f.params[p.Offset:])
	}
	return nil
}

func (f farTrainer) Load(pieces []optimizer.Span) {
	f.atRest()
	for _, p := range pieces {
		copy(f.params[p.Offset:p.Offset+p.Len], f.slab[p.Offset:])
	}
}

func (f farTrainer) atRest() {
	if f.inside.Load() {
		panic("the trainer is asked for something inside a step")
	}
}

// newFarBench is newBench with a trainer in another process.
func newFarBench(t *testing.T, takes, pace time.Duration) *bench {
	t.Helper()
	b := makeBench(t, takes, pace)
	far := farTrainer{b.fake, make([]float32, len(b.fake.params))}
	b.cfg.Trainer, b.background = far, newBackground(b.commands, b.params.Fragments)
	b.learner = b.Learner(outer.NewLearner(b.params, b.plan, far.slab, b.tips, nil), far)
	b.start(t)
	return b
}

// A command holds a step up only while it has the trainer at rest, and the account says so.
func TestStepsGoOnBesideCommands(t *testing.T) {
	for _, c := range []struct {
		name     string
		do       func(b *bench)
		at       time.Duration // when it begins
		steps    int64
		publish  float64
		finished time.Duration
	}{
		{"beside", func(b *bench) { time.Sleep(time.Second) }, 250 * time.Millisecond, 20, 0, 1250 * time.Millisecond},
		{"at rest", func(b *bench) { b.background.Pause(); time.Sleep(time.Second) }, 250 * time.Millisecond, 10, 1, 1300 * time.Millisecond},
		{"first at rest", func(b *bench) { b.background.Pause(); b.background.Resume(); time.Sleep(time.Second) }, 250 * time.Millisecond, 20, 0, 1300 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newFarBench(t, 100*time.Millisecond, 0)
			b.SetMay(true)
			began, took := time.Now(), time.Duration(0)
			b.after(c.at)
			b.Do(func() {
				defer b.does(&b.account.Publish)()
				c.do(b)
				took = time.Since(began)
			})
			p := b.after(2050*time.Millisecond - c.at)
			b.stop(t)
			if p.Steps != c.steps || !near(p.Account.Publish, c.publish) || took != c.finished {
				t.Errorf("%s: %d steps, %v s held up, over after %v; want %d, %v, %v", c.name, p.Steps, p.Account.Publish, took, c.steps, c.publish, c.finished)
			}
			if a := p.Account; !near(a.Total, a.Step+a.Publish+a.Joining) || a.Waiting != 0 {
				t.Errorf("%s: account %+v", c.name, a)
			}
		})
	}
}

// However many commands come in a step, each that needs the trainer at rest is done some steps later, and steps go on.
func TestCommandsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFarBench(t, 100*time.Millisecond, 0)
		b.SetMay(true)
		late := time.Duration(0)
		for range 500 {
			asked := time.Now()
			b.Do(func() {
				b.background.Pause()
				late = max(late, time.Since(asked))
			})
			b.after(20 * time.Millisecond)
		}
		p := b.after(0)
		b.stop(t)
		if most := time.Duration(3+len(b.plan)/5) * 100 * time.Millisecond; late > most || p.Steps < 90 {
			t.Errorf("a command was done after %v, at most %v is right; %d steps in 10 s", late, most, p.Steps)
		}
	})
}

// Drafts and tips in the background take nothing away from the steps that pass meanwhile.
func TestLearnerInTheBackgroundCountsEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFarBench(t, 10*time.Millisecond, 0)
		b.SetMay(true)
		b.after(15 * time.Millisecond) // there is something to publish
		drafted := make([]uint64, len(b.plan))
		for i := range 40 {
			p := i % len(b.plan)
			b.draft(p, func(d outer.Draft, err error) {
				if err != nil {
					t.Error(err)
				}
				drafted[p] += d.Tokens
				next := *b.tips[p]
				next.Round = uint32(i + 1)
				own := outer.Own{Seq: d.Seq, Base: d.Base, Steps: d.Steps, Tokens: d.Tokens}
				if _, err := b.learner.Follow(outer.Adopt{Fragment: p, Tip: &next, Changes: []outer.Change{{Own: own, Fate: outer.Folded}}}); err != nil {
					t.Error(err)
				}
			})
			// A draft and a tip wait for two boundaries, so none is asked for before the last is done.
			b.after(time.Duration(25+7*(i%5)) * time.Millisecond)
		}
		b.SetMay(false)
		p := b.after(time.Second)
		b.stop(t)
		for i := range b.plan {
			if _, pending := b.learner.Pending(i); drafted[i] == 0 || drafted[i]+pending != p.Tokens {
				t.Errorf("fragment %d: %d tokens drafted, %d pending of %d", i, drafted[i], pending, p.Tokens)
			}
		}
	})
}

// What was asked for before a trainer went is done before another begins, and its loss is accounted
// for in between.
func TestLostTrainerIsAccountedForBeforeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFarBench(t, 100*time.Millisecond, 0)
		var order []string
		b.cfg.Lost = func(error) { order = append(order, "lost") }
		b.SetMay(true)
		b.after(250 * time.Millisecond)
		b.fake.fail(fmt.Errorf("killed: %w", trainer.ErrLost), 0)
		b.Do(func() {
			time.Sleep(5 * time.Second)
			order = append(order, fmt.Sprintf("asked, %d restarts", len(b.fake.restarted())))
		})
		b.after(10 * time.Second)
		b.Do(func() { order = append(order, fmt.Sprintf("asked, %d restarts", len(b.fake.restarted()))) })
		b.stop(t) // does what is left
		want := fmt.Sprint([]string{"asked, 0 restarts", "lost", "asked, 1 restarts"})
		if got := fmt.Sprint(order); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

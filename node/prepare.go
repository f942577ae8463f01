package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"atoll/gossip/hello"
	"atoll/node/core"
	"atoll/node/hardware"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/node/training"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/external"
	"atoll/tensor"
)

// prepare reads the text and makes the trainer. What it measures of the machine's speed for this model chooses the precision and
// the batch, and peers learn of it by a new record. A node that comes new measures, and reads a long text, while the model comes.
func (n *node) prepare(ctx context.Context) error {
	later := n.preparesLater()
	if !later || !n.readsLong() {
		if err := n.readText(ctx); err != nil || n.cfg.Observe {
			return err
		}
	}
	if n.cfg.Learner != "" {
		return n.startLearner(ctx)
	}
	if !n.genesis.BuiltIn() {
		return fmt.Errorf("the run trains %s, which is no built-in model: say with --learner which program trains it, such as --learner hf, or hold and serve it with --observe", n.genesis.ModelLabel())
	}
	cfg := n.trainerConfig(n.genesis.Batch)
	among, note, err := trainer.Precisions(n.cfg.Precision)
	if err != nil {
		return err
	}
	if note != "" {
		n.screen.Event("learner", "", note)
	}
	if later {
		return n.tuneLater(cfg, among)
	}
	tuned, r, err := n.tuned(ctx, cfg, among)
	if err != nil {
		return err
	}
	if err := n.reportSpeed(r, tuned.Batch); err != nil {
		return err
	}
	if _, err := n.makeTrainer(tuned, n.text()); err != nil {
		return err
	}
	return n.resumeOptimizer()
}

// makeTrainer makes the built-in trainer. data may be nil until it is tuned.
func (n *node) makeTrainer(cfg trainer.Config, data trainer.Source) (*trainer.Builtin, error) {
	built, err := trainer.New(cfg, data)
	if err != nil {
		return nil, err
	}
	n.built = built
	if n.given == nil {
		n.given = built.Slab() // of the run's seed: they need not be drawn again for the tips
	}
	n.check("remember the learner", n.rememberLearner())
	return built, nil
}

// tunedShare is the part of the memory that a trainer may take beside one that is measured.
const tunedShare = 8

// preparesLater reports whether the built-in trainer of this node may wait for its measurement, and for a long text.
func (n *node) preparesLater() bool {
	if n.cfg.Observe || n.cfg.Learner != "" || !n.genesis.BuiltIn() {
		return false
	}
	cfg := n.trainerConfig(n.genesis.Batch)
	return n.comesNew() && tunedShare*uint64(cfg.MemoryBytes()) <= hardware.MemoryBytes()
}

// comesNew reports whether this node comes to others for the first time, as far as it can tell: it has the model to fetch, which takes
// longer than to measure how fast it trains.
func (n *node) comesNew() bool {
	if len(n.dials) == 0 {
		return false
	}
	c, err := n.store.Checkpoint()
	if err == nil {
		n.check("close the checkpoint", c.Close())
	}
	return errors.Is(err, store.ErrNotFound)
}

// tuneLater makes a trainer that gets its text, batch and precision on the training thread before it steps.
func (n *node) tuneLater(cfg trainer.Config, among []tensor.Precision) error {
	built, err := n.makeTrainer(cfg, nil)
	if err != nil {
		return err
	}
	n.tune = func(ctx context.Context) error {
		at := func(what string) { n.tuning.Store(&what) }
		defer n.tuning.Store(nil)
		at("reads its text")
		data, has, err := n.lateText(ctx)
		if err != nil {
			return fmt.Errorf("%w. This node has taken part already, and its folder has its key: go on with `atoll join %s --data PATH`, which takes no other use of the link", err, status.ShellWord(n.cfg.Dir))
		}
		at("measures how fast it trains")
		tuned, r, err := n.tuned(ctx, cfg, among)
		if err != nil {
			return err
		}
		if err := built.Tune(tuned, data); err != nil {
			return err
		}
		n.post(func(core.Time) {
			has()
			n.reportTuned(r, tuned)
		})
		return nil
	}
	return nil
}

// reportTuned tells peers how a trainer was tuned.
func (n *node) reportTuned(r hello.Record, tuned trainer.Config) {
	now := n.record.get()
	now.TokensPerSecond, now.Precision = r.TokensPerSecond, r.Precision
	if err := n.reportSpeed(now, tuned.Batch); err != nil {
		n.fail(err)
	}
}

// tuned measures this machine's speed for the model: the precision and batch that suit it, and the record that says so.
func (n *node) tuned(ctx context.Context, cfg trainer.Config, among []tensor.Precision) (trainer.Config, hello.Record, error) {
	r := n.record.get()
	among = n.keptPrecision(among)
	speed, precision, err := trainer.MeasureBest(ctx, cfg, among, trainer.MeasureSteps, n.cfg.measure, time.Now)
	if err != nil {
		return cfg, r, err
	}
	if len(among) > 1 {
		n.check("keep the precision", n.store.Put(precisionKey, measuredHere(precision)))
	}
	r.TokensPerSecond, r.Precision, cfg.Precision = speed.TokensPerSecond, precision.String(), precision
	if cfg.Batch, cfg.MicroBatch, err = n.planBatch(r); err != nil {
		return cfg, r, err
	}
	cfg.MicroBatch = passRows(cfg.Batch, cfg.MicroBatch, float64(n.genesis.Model.Context)/r.TokensPerSecond)
	return cfg, r, nil
}

// precisionKey is where the folder keeps which precision was the faster one, and on what.
const precisionKey = "precision"

func measuredHere(p tensor.Precision) []byte { return []byte(p.String() + " on " + hardware.CPUName()) }

// keptPrecision is the choice of an earlier start among several: this machine may be busy now, and what is measured then says nothing of it.
func (n *node) keptPrecision(among []tensor.Precision) []tensor.Precision {
	kept, err := n.store.Get(precisionKey)
	if i := slices.IndexFunc(among, func(p tensor.Precision) bool { return string(measuredHere(p)) == string(kept) }); i >= 0 && err == nil {
		return among[i : i+1]
	}
	return among
}

// reportSpeed tells peers how fast this node trains with so many rows a step, and on what.
func (n *node) reportSpeed(r hello.Record, rows int) error {
	r.TokensPerStep = uint64(rows * n.genesis.Model.Context)
	if pace := n.cfg.Pace.Seconds(); pace > 0 {
		r.TokensPerSecond = min(r.TokensPerSecond, float64(r.TokensPerStep)/pace)
	}
	if err := n.record.set(r); err != nil {
		return err
	}
	n.host.Renew()
	return nil
}

// planBatch is the rows of a step, and of one forward pass (0 = all of them).
func (n *node) planBatch(r hello.Record) (batch, micro int, err error) {
	most, context := n.genesis.OuterParams().MaxTokensPerStep, n.genesis.Model.Context
	if n.cfg.Batch == 0 {
		batch, micro = hello.Plan(r, n.genesis.Batch, context, most)
		return batch, micro, nil
	}
	if rows := most / uint64(context); uint64(n.cfg.Batch) > rows {
		return 0, 0, fmt.Errorf("config: Batch is %d rows of %d tokens; this run takes at most %d rows a step, or 0 to plan it from the measured speed", n.cfg.Batch, context, rows)
	}
	return n.cfg.Batch, 0, nil
}

// passWithin is how long one forward and backward pass may take at the measured
// speed: a leaver that cuts its step waits for the pass that is under way.
const passWithin = time.Second

// passRows is the largest divisor of batch within that time and within micro (0 =
// batch), but at least one row.
func passRows(batch, micro int, secondsPerRow float64) int {
	rows := batch
	if micro > 0 {
		rows = micro
	}
	for rows > 1 && (batch%rows != 0 || float64(rows)*secondsPerRow > passWithin.Seconds()) {
		rows--
	}
	return rows
}

func (n *node) trainerConfig(batch int) trainer.Config {
	cfg := n.genesis.TrainerConfig(batch)
	cfg.Author, cfg.Threads = n.self, n.cfg.Threads
	return cfg
}

// resumeOptimizer takes back the inner optimizer's state of before a restart.
// Without one it begins anew, which costs quality for a few steps only.
func (n *node) resumeOptimizer() error {
	c, err := n.store.Checkpoint()
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err == nil {
		var other bool
		other, err = n.loadOptimizer(c)
		if err = errors.Join(err, c.Close()); other && err == nil {
			n.screen.Event("learner", "", "another program trained on this node before: the inner optimizer begins anew")
		}
	}
	if err != nil {
		n.screen.Alarm("damaged", "", fmt.Sprintf("the inner optimizer begins anew: %v", err), n.checkDisk())
	}
	return nil
}

// loadOptimizer gives a state that was kept to the trainer, unless it is of another program.
func (n *node) loadOptimizer(state io.Reader) (other bool, err error) {
	r := bufio.NewReader(state)
	if first, _ := r.Peek(1); string(first) == "{" {
		return true, nil
	}
	return false, n.built.LoadState(r)
}

func (n *node) newTraining() *training.Thread {
	cfg := training.Config{
		Trainer: n.built, Pace: n.cfg.Pace, Clock: n.clock, Schedule: n.genesis.Inner.Schedule(),
		Stepped: n.stepped, Tune: n.tune, Lost: n.learnerLost, Lacking: n.lacksData, Back: n.learnerBack, Report: n.check,
		Save: training.Save{
			State: n.built.SaveState, Write: n.store.PutCheckpoint,
			Background: func(do func()) { n.work.goRun(func(context.Context) { do() }) },
		},
	}
	if n.cfg.Trainer != nil {
		cfg.Trainer = n.cfg.Trainer(n.built)
	}
	if n.external != nil {
		cfg.Beside = n.genesis.Outer.Fragments
	}
	if n.cfg.Learner == external.Attach {
		cfg.Absent = n.external.Absent
	}
	return training.New(cfg)
}

func (n *node) startTraining() {
	if n.train == nil {
		return
	}
	n.train.SetFraction(float64(n.machine.View().FoldedTokens()) / float64(n.genesis.Outer.Budget))
	n.work.goRun(func(ctx context.Context) {
		if err := n.train.Run(ctx); err != nil {
			n.fail(err)
		}
	})
}

// stepped runs on the training thread: the step is in the log before anything
// hears of it.
func (n *node) stepped(res trainer.StepResult, took time.Duration) {
	err := n.steplog.Append(store.Step{
		Number: uint64(n.built.Steps()), Tokens: uint64(res.Tokens),
		EndMs: time.Now().UnixMilli(), Micros: uint32(min(took.Microseconds(), math.MaxUint32)),
	})
	n.replica.Stepped(res.Tokens)
	next := n.built.Steps()
	n.post(func(now core.Time) {
		n.planShards(next)
		n.check("step log", err)
		n.steps++
		n.trained += uint64(res.Tokens)
		n.train.SetFraction(n.machine.View().Progress(now))
	})
}

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"atoll/gossip/hello"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/trainer/external"
)

// BuiltinLearner is what --learner says for the built-in trainer, where an earlier start had
// another.
const BuiltinLearner = "builtin"

// recallLearner takes the program that trains from --learner, or from an earlier start.
func (n *node) recallLearner() error {
	known, err := store.LoadLearner(n.cfg.Dir)
	switch {
	case err != nil || n.cfg.Observe:
		return err
	case n.cfg.Learner == "":
		n.cfg.Learner = known
		return nil
	case n.cfg.Learner == BuiltinLearner:
		n.cfg.Learner = ""
	}
	if n.cfg.Learner == known {
		return nil
	}
	return n.cfg.disk.WriteFile(n.cfg.Dir, store.LearnerFile, []byte(n.cfg.Learner))
}

// startLearner starts the program that trains, and tells peers of it.
func (n *node) startLearner(ctx context.Context) error {
	dir := filepath.Join(n.cfg.Dir, "learner")
	text, err := n.textFile(dir)
	if err != nil {
		return err
	}
	command, err := external.Command(n.cfg.Learner, dir)
	if err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	state, err := n.store.Checkpoint()
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		n.view.event(n, "damaged", "", fmt.Sprintf("the learner begins anew: %v", err))
	}
	g := n.genesis
	n.external, err = external.Start(ctx, external.Config{
		Command: command, Dir: dir, Views: g.Views(),
		Recipe: g.LearnerRecipe(), Seed: g.Seed, Author: n.self, Rows: max(n.cfg.Batch, g.Batch), Context: g.Model.Context, Text: text,
		State: state, MostTokens: g.Outer.MaxTokensPerStep,
		Starts: n.starts,
		Log:    func(line string) { n.log.Info("learner", "says", line) },
	})
	if err != nil {
		return err
	}
	n.built = n.external
	return n.tellLearner()
}

// tellLearner tells peers what the learner is, once its batch is planned.
func (n *node) tellLearner() error {
	r, l := n.record.get(), n.external
	r.Trainer, r.Precision, r.TokensPerSecond = hello.External, l.Precision(), l.Speed()
	if devices := l.Devices(); len(devices) > 0 {
		r.Devices, r.MemoryBytes = nil, 0
		for _, d := range devices {
			r.Devices = append(r.Devices, hello.Device{Kind: d.Kind, Name: d.Name, Count: d.Count, MemoryBytes: d.MemoryBytes})
			r.MemoryBytes += d.MemoryBytes
		}
	}
	if _, err := hello.PrecisionClass(r.Precision); err != nil {
		return fmt.Errorf("the learner %s: %w", l.Name(), err)
	}
	rows, _, err := n.planBatch(r)
	if err != nil {
		return err
	}
	l.SetRows(rows)
	n.view.event(n, "learner", "", fmt.Sprintf("%s trains with %d rows a step", l.Name(), rows))
	return n.tellSpeed(r, rows)
}

// textFile is the part of the text to train on, in a file that the learner reads. Its name has
// the text's digest: another text is another file.
func (n *node) textFile(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", store.Explain(err, n.cfg.Dir)
	}
	if n.data == nil {
		return "", nil
	}
	path, err := filepath.Abs(filepath.Join(dir, "text-"+n.data.SHA256()[:16]))
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(n.data.Train())) {
		return path, nil
	}
	if err := n.cfg.disk.WriteFile(dir, filepath.Base(path), n.data.Train()); err != nil {
		return "", store.Explain(err, n.cfg.Dir)
	}
	return path, nil
}

// starts are the places in the text of the rows of a step; all 0 where the learner has data of
// its own.
func (n *node) starts(step int64, rows int) []uint64 {
	if n.data == nil {
		return make([]uint64, rows)
	}
	return n.data.Starts(n.genesis.Seed, n.self, step, rows, n.genesis.Model.Context)
}

// learnerLost runs on the training thread: what the learner had stepped and not published is
// off the account before it starts again.
func (n *node) learnerLost(err error) {
	n.replica.LearnerLost()
	n.post(func(core.Time) {
		n.log.Error("learner", "err", err)
		n.view.event(n, "learner lost", "", err.Error())
	})
}

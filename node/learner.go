package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"atoll/gossip/hello"
	"atoll/node/core"
	"atoll/node/show"
	"atoll/node/store"
	"atoll/optimizer/trainer/external"
)

// BuiltinLearner is what --learner says for the built-in trainer, where an earlier start had
// another.
const BuiltinLearner = "builtin"

// learner is the program that trains: what the configuration says, or an earlier start had.
func (c Config) learner() (string, error) {
	switch {
	case c.Observe || c.Learner == BuiltinLearner:
		return "", nil
	case c.Learner != "":
		return strings.TrimSpace(c.Learner), nil
	}
	return store.LoadLearner(c.Dir)
}

// startLearner starts the program that trains, or begins to wait for a script that attaches. Peers are told
// what it is when it is ready.
func (n *node) startLearner(ctx context.Context) error {
	dir := n.learnerDir()
	text, held, err := n.textFiles()
	if err != nil {
		return err
	}
	command, err := external.Command(n.cfg.Learner, dir)
	if err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	if n.cfg.Threads > 0 {
		command.Env = append(command.Env, fmt.Sprintf("OMP_NUM_THREADS=%d", n.cfg.Threads))
	}
	state, err := n.learnerState()
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		n.screen.Alarm("damaged", "", fmt.Sprintf("the learner begins anew: %v", err), n.checkDisk())
	}
	g := n.genesis
	n.external, err = external.Start(ctx, external.Config{
		Command: command, Dir: dir, Views: g.Views(),
		Recipe: g.LearnerRecipe(), Seed: g.Seed, Author: n.self, Rows: max(n.cfg.Batch, g.Batch), Context: g.Model.Context, Text: text, HeldOut: held, Tokenizer: g.TokenizerIn(n.cfg.Dir),
		State: state, MostTokens: g.OuterParams().MaxTokensPerStep,
		Starts: n.starts, Leaving: ctx, Ready: n.notifyLearner,
		Log: func(line string) { n.log.Info("learner", "says", line) }, Slow: n.learnerIsSlow,
	})
	if err != nil {
		return fmt.Errorf("--learner %q: %w", n.cfg.Learner, err)
	}
	n.built = n.external
	n.check("remember the learner", n.rememberLearner())
	if n.cfg.Learner != external.Attach {
		return nil
	}
	n.screen.Event("learner", "", "waits for "+n.attaches())
	return n.record.change(func(r *hello.Record) { r.Trainer = hello.External })
}

// learnerState is what an earlier start kept of the learner. That of the built-in trainer may be large, and nobody
// takes it: its beginning is enough to see that.
func (n *node) learnerState() ([]byte, error) {
	c, err := n.store.Checkpoint()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(c, external.MostState))
	return b, errors.Join(err, c.Close())
}

// slowStart is since when a learner starts, where that takes long.
type slowStart struct{ since atomic.Pointer[time.Time] }

// text is empty where no learner is waited for.
func (s *slowStart) text() string {
	if since := s.since.Load(); since != nil {
		return fmt.Sprintf("waiting for the learner to start (%.0f s)", time.Since(*since).Seconds())
	}
	return ""
}

// learnerIsSlow is told how long a learner has taken to start, 0 once that is over. It runs beside the loop, and before there is one.
func (n *node) learnerIsSlow(took time.Duration) {
	if took == 0 {
		n.slow.since.Store(nil)
		return
	}
	if n.slow.since.Load() == nil {
		since := time.Now().Add(-took)
		n.slow.since.Store(&since)
	}
	n.log.Info(n.slow.text(), "command", n.cfg.Learner)
	if n.machine == nil {
		n.showStage(n.slow.text())
	}
}

// attaches says what has to come where the node waits for its learner.
func (n *node) attaches() string { return external.Attached(n.learnerDir()) }

func (n *node) learnerDir() string { return filepath.Join(n.cfg.Dir, "learner") }

// shownBytes is how much of what a learner calls its hardware peers are told.
const shownBytes = 60

// plainText makes a text of a learner fit for a record.
func plainText(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
	for len(s) > shownBytes {
		_, last := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-last]
	}
	return s
}

// rememberLearner keeps the program for starts without --learner, now that it has started.
func (n *node) rememberLearner() error {
	if known, err := store.LoadLearner(n.cfg.Dir); err == nil && known == n.cfg.Learner {
		return nil
	}
	return n.cfg.disk.WriteFile(n.cfg.Dir, store.LearnerFile, []byte(n.cfg.Learner))
}

// notifyLearner tells peers what the learner is, once its batch is planned.
func (n *node) notifyLearner(l *external.Learner) error {
	r := n.record.get()
	r.Trainer, r.Precision, r.TokensPerSecond = hello.External, l.Precision(), l.Speed()
	if devices := l.Devices(); len(devices) > 0 {
		r.Devices, r.MemoryBytes = nil, 0
		for _, d := range devices[:min(len(devices), hello.MaxDevices)] {
			r.Devices = append(r.Devices, hello.Device{Kind: plainText(d.Kind), Name: plainText(d.Name), Count: max(1, d.Count), MemoryBytes: d.MemoryBytes})
			r.MemoryBytes += d.MemoryBytes
		}
	}
	rows, _, err := n.planBatch(r)
	if err != nil {
		return err
	}
	l.SetRows(rows)
	text := fmt.Sprintf("%s trains with %d rows a step", l.Name(), rows)
	n.post(func(core.Time) {
		n.evaluations.unable = false
		n.screen.Event("learner", "", text)
	})
	return n.reportSpeed(r, rows)
}

// textFiles are the part of the text to train on and the part that is held out, in files that the learner reads.
func (n *node) textFiles() (train, held string, err error) {
	if err := store.Begin(n.learnerDir()); err != nil {
		return "", "", store.Explain(err, n.cfg.Dir)
	}
	if n.corpus != nil {
		train, held = n.corpus.Folders()
		if train, err = filepath.Abs(train); err == nil {
			held, err = filepath.Abs(held)
		}
		return train, held, err
	}
	if n.data == nil {
		return "", "", nil
	}
	if train, err = n.textFile("text-", n.data.Train()); err == nil {
		held, err = n.textFile("held-out-", n.data.HeldOut())
	}
	return train, held, err
}

// textFile writes a part of the text. The file's name has the text's digest: another text is another file.
func (n *node) textFile(name string, part []byte) (string, error) {
	file := name + n.data.SHA256()[:16]
	path, err := filepath.Abs(filepath.Join(n.learnerDir(), file))
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(part)) {
		return path, nil
	}
	if err := n.cfg.disk.WriteFile(n.learnerDir(), file, part); err != nil {
		return "", store.Explain(err, n.cfg.Dir)
	}
	return path, nil
}

// starts are the places in the text of the rows of a step; all 0 where the learner has data of
// its own. It runs on the training thread.
func (n *node) starts(step int64, rows int) ([]uint64, error) {
	switch {
	case n.corpus != nil:
		return n.corpus.Starts(step, rows)
	case n.data == nil:
		return make([]uint64, rows), nil
	}
	return n.data.Starts(n.genesis.Seed, n.self, step, rows, n.genesis.Model.Context), nil
}

// learnerLost runs where commands do, and says a loss once: what the learner had stepped and not published is
// off the account before it starts again, or another attaches.
func (n *node) learnerLost(err error) {
	if errors.Is(err, external.ErrNobody) {
		return // there was none
	}
	n.train.Rest()
	if lost := n.external.Lost(); lost != nil && errors.Is(err, lost) {
		if lost == n.toldLost {
			return
		}
		n.toldLost = lost
	}
	kind, next, remedy := "learner lost", "it starts again", show.LearnerRemedy
	if n.cfg.Learner == external.Attach {
		next = "waits for " + n.attaches()
	}
	if errors.Is(err, external.ErrLeft) {
		kind, remedy = "learner left", ""
	}
	if n.external.Unflushed() {
		n.replica.LearnerLost()
		n.external.Accounted()
	}
	n.post(func(core.Time) { n.screen.Alarm(kind, "", err.Error()+"; "+next, remedy) })
}

// learnerBack runs on the training thread: a learner that was lost trains again.
func (n *node) learnerBack() {
	text := n.external.Name() + " trains again"
	n.post(func(core.Time) { n.screen.Event("learner back", "", text) })
}

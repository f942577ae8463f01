//go:build unix

package trainer

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"atoll/optimizer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor/llama"
)

// proseVariable names the environment variable that asks for the comparison of
// the optimizers: how many tokens each of them gets, 500000 for the figures of
// the benchmarks. It takes minutes.
const proseVariable = "ATOLL_PROSE_TOKENS"

// TestProse trains one learner of the tiny model on the text that ships with Go.
// It takes each optimizer at several learning rates and the schedule of a run,
// and prints the result:
//
//	ATOLL_PROSE_TOKENS=500000 go test -run TestProse -v ./optimizer/trainer
func TestProse(t *testing.T) {
	tokens, err := strconv.Atoi(os.Getenv(proseVariable))
	if err != nil {
		t.Skipf("it takes minutes; %s says how many tokens to train on", proseVariable)
	}
	data, err := corpus.Open(corpus.Prose)
	if err != nil {
		t.Fatal(err)
	}
	for _, lr := range []float64{1e-3, 2e-3, 4e-3} {
		for _, name := range []string{optimizer.NameAdamW, optimizer.NameMuon} {
			t.Logf("%-5s lr %.0e: %s", name, lr, proseRun(t, data, name, lr, tokens))
		}
	}
}

// proseRun is one training; the time of a step is the median, of processor time,
// because the machine may do other things as well.
func proseRun(t *testing.T, data *corpus.Corpus, name string, lr float64, tokens int) string {
	cfg := Config{Model: llama.Tiny, Batch: 4, Optim: DefaultOptim(), Seed: 1, Threads: 1}
	cfg.Optim.Name, cfg.Optim.Momentum = name, DefaultMomentum
	b, err := New(cfg, data)
	if err != nil {
		t.Fatal(err)
	}
	schedule := optimizer.Schedule{Peak: lr, FinalFraction: 0.1, WarmupFraction: 0.03}
	var times []time.Duration
	for done := 0; done < tokens; {
		began := processorTime(t)
		r, err := b.Step(context.Background(), schedule.At(float64(done)/float64(tokens)))
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, processorTime(t)-began)
		done += r.Tokens
	}
	bits, err := BitsPerByte(context.Background(), cfg.Model, b.Slab(), data.HeldOutSample(1<<16, cfg.Model.Context))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(times)
	return fmt.Sprintf("%.3f bits per byte after %d steps of %v", bits, len(times), times[len(times)/2].Round(10*time.Microsecond))
}

// processorTime is how long the processors have worked for this process.
func processorTime(t *testing.T) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

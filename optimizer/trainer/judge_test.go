package trainer

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"atoll/optimizer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// judgeSteps is how long the fast kernels are followed, and exactSteps how long where each step must have the same bits.
const (
	judgeSteps = 100
	exactSteps = 12
)

// judged is what a process says of its training: the loss of each step, and the parameters after
// the last one, their bits in a file.
type judged struct {
	Kernel string
	Losses []float64
}

const (
	judgeKernel = "ATOLL_KERNEL"      // which kernel a process trains with
	judgeFile   = "ATOLL_JUDGED_FILE" // where the process under test leaves what it found
	judgeOptim  = "ATOLL_JUDGED_OPTIM"
	judgeBits   = "ATOLL_JUDGED_PRECISION"
)

// judgeModel fills tiles of the fast kernels and leaves ragged ends: heads share keys, and no size is
// a multiple of 16.
var judgeModel = llama.Config{Vocab: 256, Hidden: 36, Layers: 2, Heads: 6, KVHeads: 2, Intermediate: 92, Context: 40, RopeTheta: 10000, NormEps: 1e-5, Tied: true}

// chain is a text of words that follow from one another by chance: there is something to learn all the time.
func chain() *corpus.Corpus {
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([][]byte, 64)
	for i := range words {
		words[i] = make([]byte, 2+rng.IntN(6))
		for j := range words[i] {
			words[i][j] = byte('a' + rng.IntN(26))
		}
	}
	var text []byte
	for at := 0; len(text) < 1<<15; at = (5*at + rng.IntN(4)) % len(words) {
		text = append(append(text, words[at]...), ' ')
	}
	return corpus.New("chain", text)
}

// TestTrainJudged is no test: it is what TestFastTrainerFollowsTheJudge runs with each kernel.
func TestTrainJudged(t *testing.T) {
	path := os.Getenv(judgeFile)
	if path == "" {
		t.Skip("it is run by TestFastTrainerFollowsTheJudge")
	}
	cfg := Config{Model: judgeModel, Batch: 3, Optim: DefaultOptim(), Seed: 3, Threads: 2}
	if cfg.Optim.Name = os.Getenv(judgeOptim); cfg.Optim.Name == optimizer.NameMuon {
		cfg.Optim.Momentum = DefaultMomentum
	}
	if err := cfg.Precision.UnmarshalText([]byte(os.Getenv(judgeBits))); err != nil {
		t.Fatal(err)
	}
	b, err := New(cfg, chain())
	if err != nil {
		t.Fatal(err)
	}
	j := judged{Kernel: tensor.KernelOf(cfg.Precision)}
	steps := judgeSteps
	if cfg.Precision == tensor.BF16 {
		steps = exactSteps
	}
	for range steps {
		res, err := b.Step(context.Background(), 2e-3)
		if err != nil {
			t.Fatal(err)
		}
		j.Losses = append(j.Losses, res.Loss)
	}
	params := make([]byte, 4*len(b.Params()))
	for i, x := range b.Params() {
		binary.LittleEndian.PutUint32(params[4*i:], math.Float32bits(x))
	}
	found, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{path: found, path + ".params": params} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// train runs TestTrainJudged in a process with a kernel; "" is the fastest.
func train(t *testing.T, kernel, optim string, precision tensor.Precision) (judged, []float32) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "judged")
	cmd := exec.Command(os.Args[0], "-test.run", "^TestTrainJudged$")
	cmd.Env = append(os.Environ(), judgeKernel+"="+kernel, judgeFile+"="+path, judgeOptim+"="+optim, judgeBits+"="+precision.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("train with kernel %q: %v\n%s", kernel, err, out)
	}
	found, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var j judged
	if err := json.Unmarshal(found, &j); err != nil {
		t.Fatal(err)
	}
	params, err := os.ReadFile(path + ".params")
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float32, len(params)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(params[4*i:]))
	}
	return j, v
}

// A trainer on the fastest kernels, which fuse multiplications with additions, goes where a trainer on plain
// Go goes. Over 100 steps on the same batches no loss is off by more than 1e-3 of itself, and the parameters
// end as near.
func TestFastTrainerFollowsTheJudge(t *testing.T) {
	for _, optim := range []string{optimizer.NameAdamW, optimizer.NameMuon} {
		t.Run(optim, func(t *testing.T) {
			fast, got := train(t, "", optim, tensor.F32)
			if fast.Kernel == "go" {
				t.Skip("this build on this machine has plain Go alone")
			}
			plain, want := train(t, "go", optim, tensor.F32)
			worst := 0.0
			for i, loss := range plain.Losses {
				worst = max(worst, math.Abs(fast.Losses[i]-loss)/loss)
			}
			first, last := plain.Losses[0], plain.Losses[judgeSteps-1]
			off := distance(got, want)
			t.Logf("%s against %s: loss from %.3f to %.3f, off by %.1e at most, parameters by %.1e", fast.Kernel, plain.Kernel, first, last, worst, off)
			if worst > 1e-3 || off > 1e-3 {
				t.Errorf("%s: a loss is off by %v, the parameters by %v, want 1e-3 at most", fast.Kernel, worst, off)
			}
			if last > 0.8*first {
				t.Errorf("the loss went from %v to %v: nothing was learned that could differ", first, last)
			}
		})
	}
}

// In bfloat16 a trainer on the fast kernels has the bits of a trainer on plain Go: the judge adds up in the order
// of the instruction, and all else has one result on all kernels.
func TestFastTrainerHasTheBitsOfTheJudgeInBF16(t *testing.T) {
	if fast, why := tensor.FastBF16(); !fast {
		t.Skip(why)
	}
	for _, optim := range []string{optimizer.NameAdamW, optimizer.NameMuon} {
		t.Run(optim, func(t *testing.T) {
			fast, got := train(t, "", optim, tensor.BF16)
			plain, want := train(t, "go", optim, tensor.BF16)
			if fast.Kernel == plain.Kernel {
				t.Fatalf("both trained with the kernel %s", fast.Kernel)
			}
			if !slices.Equal(fast.Losses, plain.Losses) || !slices.Equal(got, want) {
				t.Errorf("%s goes another way than %s: losses %v and %v", fast.Kernel, plain.Kernel, fast.Losses, plain.Losses)
			}
			if first, last := plain.Losses[0], plain.Losses[exactSteps-1]; last >= first {
				t.Errorf("the loss went from %v to %v: nothing was learned", first, last)
			}
		})
	}
}

// distance is |x - y| / |y|.
func distance(x, y []float32) float64 {
	var d, n float64
	for i := range y {
		d += math.Pow(float64(x[i])-float64(y[i]), 2)
		n += float64(y[i]) * float64(y[i])
	}
	return math.Sqrt(d / n)
}

package genesis

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"atoll/tensor/llama"
)

// frameworksVariable names the folder of a Python that has PyTorch and transformers.
const frameworksVariable = "ATOLL_FRAMEWORKS"

// logitsProgram prints the logits after each of some prefixes, as transformers has them.
const logitsProgram = `
import json, sys, torch, transformers
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
with torch.no_grad():
    print(json.dumps([model(torch.tensor([prefix])).logits[0, -1].tolist() for prefix in json.load(sys.stdin)]))
`

// logitsAgree is how far logits may be apart: float32, summed in another order.
const logitsAgree = 1e-4

// An exported model says in transformers what it says here.
func TestLogitsAgreeWithTransformers(t *testing.T) {
	home := os.Getenv(frameworksVariable)
	if home == "" {
		t.Skipf("needs PyTorch and transformers: %s=FOLDER names that of their Python", frameworksVariable)
	}
	for name, change := range map[string]func(*llama.Config){
		"tied":               func(*llama.Config) {},
		"untied":             func(c *llama.Config) { c.Tied = false },
		"shared keys":        func(c *llama.Config) { c.KVHeads = 1 },
		"another base, norm": func(c *llama.Config) { c.RopeTheta, c.NormEps = 500, 1e-3 },
	} {
		t.Run(name, func(t *testing.T) {
			g := fixedGenesis()
			change(&g.Model)
			p := g.NewSlab()
			llama.Init(g.Model, p, 7)
			for i := range p.Data { // larger than at the start, so that all terms count
				p.Data[i] *= 2
			}
			out := filepath.Join(t.TempDir(), "model")
			if err := g.Export(out, p, 1, Form{}); err != nil {
				t.Fatal(err)
			}
			prefixes := [][]int32{{65}, make([]int32, g.Model.Context/2), make([]int32, g.Model.Context)}
			for _, prefix := range prefixes[1:] {
				for i := range prefix {
					prefix[i] = int32(i * i % 251)
				}
			}
			here := llama.NewModel(g.Model, 1)
			for i, there := range theirLogits(t, home, out, prefixes) {
				compareLogits(t, here.Logits(p, prefixes[i]), there)
			}
		})
	}
}

func theirLogits(t *testing.T, home, model string, prefixes [][]int32) (logits [][]float32) {
	t.Helper()
	in, err := json.Marshal(prefixes)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(home, "bin", "python3"), "-c", logitsProgram, model)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	b, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(b, &logits)
	}
	if err != nil || len(logits) != len(prefixes) {
		t.Fatalf("%d answers, %v", len(logits), err)
	}
	return logits
}

func compareLogits(t *testing.T, here, there []float32) {
	t.Helper()
	if len(here) != len(there) {
		t.Fatalf("%d logits, transformers has %d", len(here), len(there))
	}
	var apart, size float64
	for i := range here {
		apart, size = max(apart, math.Abs(float64(here[i]-there[i]))), max(size, math.Abs(float64(here[i])))
	}
	t.Logf("logits up to %.2f, %.1e apart", size, apart)
	if !(apart <= logitsAgree) || size < 0.1 {
		t.Errorf("logits up to %g are %g apart, at most %g", size, apart, logitsAgree)
	}
}

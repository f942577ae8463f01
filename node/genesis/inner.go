package genesis

import (
	"encoding/json"
	"fmt"
	"math"

	"atoll/optimizer"
	"atoll/optimizer/trainer"
)

// Inner is the inner optimizer. What else it has follows from its name, and the rate warms up and decays over the token
// budget. See optimizer.Muon for what Muon makes of the learning rate.
type Inner struct {
	Optimizer string  // optimizer.NameAdamW or NameMuon
	LR        float64 // peak learning rate
}

// validate refuses a name of no inner optimizer.
func (in Inner) validate() error {
	if err := CheckOptimizer(in.Optimizer); err != nil || in.Optimizer == "" {
		return fmt.Errorf("genesis: Inner.Optimizer is %.80q; this version knows %q and %q", in.Optimizer, optimizer.NameAdamW, optimizer.NameMuon)
	}
	return nil
}

// Peak learning rates that measured best (testnet/lab/RESULTS.md). Muon's was measured with a hidden size of muonWidth, without outer
// steps.
const (
	adamWRate = 2e-3
	muonRate  = 8e-3
	muonWidth = 64
)

// CheckOptimizer refuses a name of no inner optimizer; "" leaves it open.
func CheckOptimizer(name string) error {
	if name != "" && name != optimizer.NameAdamW && name != optimizer.NameMuon {
		return fmt.Errorf("optimizer %.80q: use %s or %s", name, optimizer.NameAdamW, optimizer.NameMuon)
	}
	return nil
}

// RateWith is the peak learning rate that suits a run's inner optimizer, its model and its outer steps. outerSteps says that
// there are outer steps. Learners differ, so the average of their updates is short and wants a higher rate. Momentum makes
// it longer, and wants a lower one. Tiny came to the fewest bits with 4e-3 in data parallelism, 8e-3 with the mean of 4
// steps, and 4e-3 with momentum after 24. Each is the best of three rates on two seeds.
func RateWith(g Genesis, outerSteps bool) float64 {
	switch {
	case g.Inner.Optimizer == optimizer.NameAdamW:
		return adamWRate
	case !outerSteps:
		return muonRateOf(g.Model.Hidden, 1)
	case g.OuterParams().Mu > 0:
		return muonRateOf(g.Model.Hidden, 1/math.Sqrt2)
	}
	return muonRateOf(g.Model.Hidden, math.Sqrt2)
}

// muonRateOf returns Muon's rate for matrices of so many columns, to two digits, so many times the usual. Entries of its updates have one size,
// so that their spectral norm grows with the root of the width, where models of all widths want the same
// (G. Yang, J. Simon, J. Bernstein, A spectral condition for feature learning, 2023).
// Measured best were, in data parallelism, 8e-3 and 1.1e-2 at a width of 64 and 4e-3 at 128 and 384; the rule is between these.
func muonRateOf(hidden int, times float64) float64 {
	rate := times * muonRate * math.Sqrt(muonWidth/float64(hidden))
	digits := math.Pow(10, math.Floor(math.Log10(rate))-1)
	return math.Round(rate/digits) / math.Round(1/digits)
}

// Optim is the inner optimizer as trainers take it.
func (in Inner) Optim() trainer.OptimConfig {
	o := trainer.DefaultOptim()
	if o.Name = in.Optimizer; o.Name == optimizer.NameMuon {
		o.Momentum = trainer.DefaultMomentum
	}
	return o
}

// TrainerConfig is what the run asks of a trainer with so many rows a step.
func (g Genesis) TrainerConfig(batch int) trainer.Config {
	return trainer.Config{Model: g.Model, Batch: batch, Seed: g.Seed, Optim: g.Inner.Optim()}
}

// LearnerRecipe is what the learners of a run agree on, for programs that train in place of
// the built-in trainer: optimizer/trainer/external/PROTOCOL.md says what is in it.
func (g Genesis) LearnerRecipe() string {
	if !g.BuiltIn() {
		return g.Recipe
	}
	type model struct {
		Vocab        int     `json:"vocab"`
		Hidden       int     `json:"hidden"`
		Layers       int     `json:"layers"`
		Heads        int     `json:"heads"`
		KVHeads      int     `json:"kv_heads"`
		Intermediate int     `json:"intermediate"`
		Context      int     `json:"context"`
		RopeTheta    float64 `json:"rope_theta"`
		NormEps      float64 `json:"norm_eps"`
		Tied         bool    `json:"tied"`
	}
	type inner struct {
		Name        string  `json:"name"`
		Beta1       float64 `json:"beta1"`
		Beta2       float64 `json:"beta2"`
		Eps         float64 `json:"eps"`
		WeightDecay float64 `json:"weight_decay"`
		Momentum    float64 `json:"momentum"`
		Clip        float64 `json:"clip"`
	}
	o := g.Inner.Optim()
	b, err := json.Marshal(struct {
		Family    string `json:"family"`
		Tokenizer string `json:"tokenizer"`
		Model     model  `json:"model"`
		Optimizer inner  `json:"optimizer"`
	}{
		"llama", g.Tokenizer(), model(g.Model),
		inner{o.Name, o.AdamW.Beta1, o.AdamW.Beta2, o.AdamW.Eps, o.AdamW.WeightDecay, o.Momentum, o.Clip},
	})
	if err != nil {
		panic("encode recipe: " + err.Error()) // only a NaN could fail, and Validate refuses it
	}
	return string(b)
}

// Schedule is the learning rate over the run.
func (in Inner) Schedule() optimizer.Schedule {
	return optimizer.Schedule{Peak: in.LR, FinalFraction: finalRate, WarmupFraction: warmup}
}

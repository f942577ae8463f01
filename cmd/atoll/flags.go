package main

import (
	"cmp"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/optimizer"
	"atoll/optimizer/outer"
)

// checkTimeout refuses a time to wait that is none.
func checkTimeout(d time.Duration) error {
	if d <= 0 {
		return cli.BadUsage("--timeout is %v; use a duration such as 30s", d)
	}
	return nil
}

// runFlags are what `atoll new` and `atoll testnet` both let people choose of a run.
type runFlags struct {
	Model     string  `help:"Size of the model: tiny, small, base, or a JSON file of sizes. Default: tiny." placeholder:"NAME"`
	Seed      uint64  `help:"Seed of the initial parameters and of the learners' batches." default:"1"`
	Batch     int     `help:"Rows of text in one step. Default: by the model's size." placeholder:"ROWS"`
	Optimizer string  `help:"Inner optimizer: ${enum}. A step of Muon takes up to twice as long and learns more. auto is muon for built-in models and adamw for others." enum:"auto,adamw,muon" default:"auto"`
	LR        float64 `name:"lr" help:"Peak learning rate of the inner optimizer. Default: the best measured for the optimizer, the model's width and the outer momentum." placeholder:"RATE"`
	H         int     `name:"h" help:"Steps between two deltas of a fragment. Fewer steps between deltas give a better model and need more bandwidth. Default: 24, or 4 with --codec sparse." placeholder:"STEPS"`
	Fragments int     `help:"Parts of the model, each with rounds of its own. Default: by the model's size." placeholder:"N"`
	Codec     string  `help:"Encoding of deltas: ${enum}. At the same H, sparse8 needs a quarter of the bytes of int4 and makes the model 1 to 4 % worse; sparse needs a twentieth and makes it 3 to 11 % worse. auto is int4, unless --bandwidth of atoll new chooses another." enum:"auto,f32,int4,sparse8,sparse" default:"auto"`
}

// model is the model that a run is of, where it is a built-in one.
func (f runFlags) model() string { return cmp.Or(f.Model, "tiny") }

// Limits of a run.
const maxLR = 10

// check refuses what no run can have.
func (f runFlags) check() error {
	if !(f.LR >= 0 && f.LR <= maxLR) {
		return cli.BadUsage("--lr is %v; use a learning rate between 0 and %d", f.LR, maxLR)
	}
	return cmp.Or(cli.CheckWhole("--batch", f.Batch, maxBatch, ""), cli.CheckWhole("--h", f.H, outer.MaxH, ""), cli.CheckWhole("--fragments", f.Fragments, 0, ""))
}

// auto leaves a choice to what is known of the run.
const auto = "auto"

// asked is what a flag asks for by name, "" if that is left to the run.
func asked(flag string) string {
	if flag == auto {
		return ""
	}
	return flag
}

// builtinOptimizer is the inner optimizer of built-in models that a flag asks for.
func builtinOptimizer(flag string) string { return cmp.Or(asked(flag), optimizer.NameMuon) }

// checkOtherOptimizer refuses an inner optimizer that programs of models that are not built in do not have.
func checkOtherOptimizer(flag, of string) error {
	if name := asked(flag); name != "" && name != optimizer.NameAdamW {
		return cli.BadUsage("--optimizer is %s, and learners of %s use %s: leave it out", name, of, optimizer.NameAdamW)
	}
	return nil
}

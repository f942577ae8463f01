package main

import (
	"cmp"
	"fmt"
	"time"

	"atoll/optimizer"
	"atoll/optimizer/outer"
)

// jsonFlag is of commands that report one thing.
type jsonFlag struct {
	JSON bool `name:"json" help:"Answer with one JSON object."`
}

// linesFlag is of commands that report several.
type linesFlag struct {
	JSON bool `name:"json" help:"Answer with one JSON object per line."`
}

// threadsFlag is of commands that compute.
type threadsFlag struct {
	Threads int `help:"Threads to compute with. Default: one per core." placeholder:"N"`
}

func (f threadsFlag) check() error {
	return given{"--threads", f.Threads, 0, "for one per core"}.check()
}

// given is a whole number that a flag gave; 0 is none.
type given struct {
	flag    string
	n, most int    // no most = 0
	none    string // what leaving it out is for, "" if the help says it
}

// check refuses what is out of range.
func (g given) check() error {
	if g.n >= 0 && (g.most == 0 || g.n <= g.most) {
		return nil
	}
	use, out := "1 or more", "leave it out"
	if g.most > 0 {
		use = fmt.Sprintf("1 to %d", g.most)
	}
	if g.none != "" {
		out += " " + g.none
	}
	return badUsage("%s is %d; use %s, or %s", g.flag, g.n, use, out)
}

// checkTimeout refuses a time to wait that is none.
func checkTimeout(d time.Duration) error {
	if d <= 0 {
		return badUsage("--timeout is %v; use a duration such as 30s", d)
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
		return badUsage("--lr is %v; use a learning rate between 0 and %d", f.LR, maxLR)
	}
	return cmp.Or(given{"--batch", f.Batch, maxBatch, ""}.check(), given{"--h", f.H, outer.MaxH, ""}.check(), given{"--fragments", f.Fragments, 0, ""}.check())
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
		return badUsage("--optimizer is %s, and learners of %s use %s: leave it out", name, of, optimizer.NameAdamW)
	}
	return nil
}

package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"atoll/node/genesis"
	"atoll/node/hardware"
	"atoll/node/status"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer/corpus"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/codec"
)

// fromAnswer is what `atoll new --from` made.
type fromAnswer struct {
	Run         string   `json:"run"`
	Name        string   `json:"name"`
	Genesis     string   `json:"genesis"`
	Owner       string   `json:"owner,omitempty"` // path of the owner's key, in a run that admits by invitation
	Tensors     int      `json:"tensors"`
	Params      int      `json:"params"`
	Left        []string `json:"left,omitempty"`
	Base        string   `json:"base,omitempty"`        // model that adapters belong to: its folder, or its name
	BaseSHA256  string   `json:"base_sha256,omitempty"` // digest of its weights, if they are here
	Fragments   int      `json:"fragments"`
	Pieces      int      `json:"pieces"`
	Context     int      `json:"context"`
	H           int      `json:"h"`
	LR          float64  `json:"lr"`
	Codec       string   `json:"codec"`
	Merge       string   `json:"merge"`
	Budget      uint64   `json:"budget_tokens"`
	DeltaBytes  int      `json:"delta_bytes"`  // at most, of one fragment
	RoundBytes  int      `json:"round_bytes"`  // at most, of one learner's deltas of all fragments
	MemoryBytes uint64   `json:"memory_bytes"` // beside the learner

	Expected *expected `json:"expected,omitempty"` // of --bandwidth
	Sizes    sizes     `json:"sizes"`
	Next     string    `json:"next"`
}

// runFrom makes a run that goes on with a model.
func (c *NewCmd) runFrom(ctx context.Context, out *console) error {
	switch {
	case c.Model != "":
		return badUsage("--from and --model %s are two models: leave one of them out", c.Model)
	case c.Tokens == nil:
		return badUsage("--from needs --tokens: how long a model goes on to train is for you to say")
	case c.Bandwidth != 0 && c.Step == 0:
		return badUsage("--bandwidth needs --step with --from: how long a step takes is for your learner to say; atoll learner check measures it")
	case c.OwnData:
		return badUsage("--own-data goes without saying with --from: learners bring their own data, unless --data names the run's text")
	case c.Context < 0:
		return badUsage("--context is %d; use 1 or more tokens of a row", c.Context)
	}
	if err := cmp.Or(checkOtherOptimizer(c.Optimizer, "a run made by --from"), c.check()); err != nil {
		return err
	}
	g, config, left, err := genesis.FromModel(c.From, uint64(*c.Tokens), c.Seed, time.Now().UnixMilli())
	if err != nil {
		return err
	}
	if err := c.applyFrom(&g); err != nil {
		return err
	}
	e, err := c.chooseLinks(ctx, &g)
	if err != nil {
		return err
	}
	c.fit(&g, e)
	if shards.IsDir(c.Data) {
		return badUsage("--data %s is a corpus, which only built-in models read: leave --from out, or pass the text", c.Data)
	}
	if c.Data != "" {
		text, err := corpus.Open(c.Data)
		if err != nil {
			return err
		}
		g.Data = genesis.Data{Name: text.Name(), SHA256: text.SHA256()}
	}
	base, err := c.base(&config)
	if err != nil {
		return err
	}
	if err := g.SetRecipe(config); err != nil {
		return err
	}
	owner, err := c.admit(&g)
	if err != nil {
		return err
	}
	path, err := c.write(g)
	if err != nil {
		return err
	}
	a := c.describeFrom(g, path, left)
	a.Owner, a.Expected, a.Sizes = owner, e, c.sizesOf(g)
	a.Base, a.BaseSHA256 = base.name, base.digest
	if c.JSON {
		return out.json(a)
	}
	return a.print(out)
}

// base is the model that adapters belong to.
type base struct{ name, digest string }

// base puts the digest of the model that adapters belong to into their recipe.
func (c *NewCmd) base(config *json.RawMessage) (b base, err error) {
	if !genesis.Adapters(*config) {
		if c.Base != "" {
			return b, badUsage("--base is the model of adapters, and %s has a whole model", c.From)
		}
		return b, nil
	}
	*config, b.name, b.digest, err = genesis.AddBase(*config, c.Base)
	if b.digest != "" {
		c.Base = b.name
	}
	return b, err
}

// applyFrom puts the flags that were given into a genesis.
func (c *NewCmd) applyFrom(g *genesis.Genesis) error {
	set(&g.Name, c.Name)
	set(&g.Outer.Fragments, c.Fragments)
	set(&g.Outer.Answerers, c.Answerers)
	set(&g.Model.Context, c.Context)
	set(&g.Batch, c.Batch)
	if err := c.setCodec(g); err != nil {
		return err
	}
	g.Outer.SetH(cmp.Or(c.H, outer.DefaultH(g.Outer.Codec)))
	c.followH(g)
	g.Outer.SetLearners(c.Learners)
	g.SetMostTokens()
	return g.SetProfile(c.Profile)
}

func (c *NewCmd) describeFrom(g genesis.Genesis, path string, left []string) fromAnswer {
	id, plan := g.RunID(), g.Plan()
	a := fromAnswer{
		Run: hex.EncodeToString(id[:]), Name: g.Name, Genesis: path, Tensors: len(g.Layout), Params: g.Params(), Left: left,
		Fragments: len(plan), Context: g.Model.Context, H: g.Outer.H, LR: g.Inner.LR, Codec: g.Outer.Codec.String(), Merge: g.Outer.Merge,
		Budget: g.Outer.Budget, MemoryBytes: hardware.Role{External: true}.Need(g),
		Next: fmt.Sprintf("atoll join --genesis %s --init %s --learner %s --dir %s --profile %s", status.ShellWord(path), status.ShellWord(c.From), status.ShellWord(c.learner(g)), status.ShellWord(defaultDir(id)), c.Profile) + dataFlag(c.Data),
	}
	for _, f := range plan {
		size := codec.MaxSize(g.Outer.Codec, f.Len)
		a.DeltaBytes, a.RoundBytes, a.Pieces = max(a.DeltaBytes, size), a.RoundBytes+size, a.Pieces+len(f.Tensors)
	}
	return a
}

func (a fromAnswer) print(out *console) error {
	rows := [][]string{
		{"run", a.Run}, {"name", a.Name}, {"genesis", a.Genesis}, {"admission", admissionText(a.Owner)},
		{"model", fmt.Sprintf("%d tensors, %s parameters; %d fragments of %d pieces", a.Tensors, big(float64(a.Params)), a.Fragments, a.Pieces)},
		{"training", fmt.Sprintf("rows of %d tokens, AdamW at %g, %s tokens in all", a.Context, a.LR, big(float64(a.Budget)))},
		{"deltas", fmt.Sprintf("%s every %d steps, merged by %s: at most %s a fragment, %s for all of them", a.Codec, a.H, a.Merge, status.Bytes(float64(a.DeltaBytes)), status.Bytes(float64(a.RoundBytes)))},
	}
	if a.Expected != nil {
		rows = append(rows, a.Expected.rows()...)
	}
	if cost := codecCost(a.Codec, a.H, a.Expected); cost != "" {
		rows = append(rows, []string{"codec", a.Codec + ": " + cost})
	}
	rows = append(rows, a.Sizes.rows()...)
	if a.BaseSHA256 != "" {
		rows = append(rows, []string{"base", fmt.Sprintf("%s, weights %s: learners refuse another", a.Base, shortID(a.BaseSHA256))})
	} else if a.Base != "" {
		rows = append(rows, []string{"base", fmt.Sprintf("%s, which is no folder here: the recipe names no weights, so that nobody sees a learner with others; --base DIR names them", a.Base)})
	}
	for _, name := range a.Left {
		rows = append(rows, []string{"left out", name})
	}
	err := table(out.out, rows...)
	out.answer("\nStart it on the first machine with\n\n    %s\n\nIt prints the join link for all others.", a.Next)
	return err
}

// dataFlag is the flag with which the first node reads the run's text.
func dataFlag(path string) string {
	if path == "" {
		return ""
	}
	return " --data " + status.ShellWord(path)
}

// learner is a program that can train the run: the one for Hugging Face's models where the
// config names one, otherwise a script of the user.
func (c *NewCmd) learner(g genesis.Genesis) string {
	switch {
	case !strings.Contains(g.Recipe, `"model_type":`) && !strings.Contains(g.Recipe, `"peft_type":`):
		return "python3 train.py"
	case genesis.Adapters(json.RawMessage(g.Recipe)):
		return "hf --base " + cmp.Or(c.Base, "DIR") + " --data TEXT --tokenizer " + cmp.Or(c.Base, "DIR")
	case c.Data == "":
		return "hf --data TEXT --tokenizer " + c.From
	}
	return "hf --tokenizer " + c.From
}

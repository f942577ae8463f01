package main

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/genesis"
	"atoll/node/joinlink"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/codec"
)

// Bounds of flags.
const (
	maxName = 200 // bytes of a run's name

	// How long and how often a step is timed where its time is not given.
	stepTimes   = 3
	stepTimeFor = time.Second
)

// check refuses flags that no run can have.
func (c *NewCmd) check() error {
	switch {
	case len(c.name()) > maxName:
		return cli.BadUsage("the run's name has %d bytes; use at most %d", len(c.name()), maxName)
	case c.Tokens != nil && *c.Tokens < 1:
		return cli.BadUsage("--tokens is %d; use 1 or more, or leave it out", *c.Tokens)
	case c.OwnData && c.Data == "" && c.From == "":
		return cli.BadUsage("--own-data needs --data PATH with the text of this machine")
	case c.LearnersPerRound != 0 && (c.LearnersPerRound < outer.LeastQuorum || c.LearnersPerRound > outer.MaxLearnersPerRound):
		return cli.BadUsage("--learners-per-round is %d; use %d to %d, or leave it out", c.LearnersPerRound, outer.LeastQuorum, outer.MaxLearnersPerRound)
	case (c.Uses != nil || c.Expires != nil) && c.Admission == genesis.Open:
		return cli.BadUsage("--uses and --expires are of the first node's link, and a run with --admission open needs no invite: leave them out")
	case c.Owner != "" && c.Admission == genesis.Open:
		return cli.BadUsage("--owner is for runs with --admission invite: an open run has no owner")
	case c.From == "" && c.Base != "":
		return cli.BadUsage("--base is the model of adapters: name their folder by --from")
	}
	if joinlink.Is(c.Dir) {
		return cli.BadUsage("%s is a join link: `atoll join` takes it, and atoll new makes a run of its own", joinlink.Shown(c.Dir))
	}
	return cmp.Or(c.runFlags.check(), c.checkLinks(), c.checkFrom())
}

func (c *NewCmd) checkLinks() error {
	switch {
	case c.Learners < 1 || c.Learners > outer.MaxLearners:
		return cli.BadUsage("--learners is %d; use 1 to %d", c.Learners, outer.MaxLearners)
	case c.Bandwidth == 0 && c.Step != 0:
		return cli.BadUsage("--step is for --bandwidth; pass both, or leave out --step")
	case c.Bandwidth == 0:
		return nil
	case c.H != 0 || c.Fragments != 0:
		return cli.BadUsage("--bandwidth chooses H and the fragments; leave out --h and --fragments, or leave out --bandwidth")
	case c.Step < 0:
		return cli.BadUsage("--step is %v; use a time such as 500ms, or leave it out", c.Step)
	}
	return nil
}

// checkFrom refuses flags that a model which somebody brings leaves no room for.
func (c *NewCmd) checkFrom() error {
	switch {
	case c.From == "" && c.Context != 0:
		return cli.BadUsage("--context is for --from: pass both, or leave --context out, as the model's own sizes have one")
	case c.From == "":
		return nil
	case c.Model != "":
		return cli.BadUsage("--from and --model %s are two models: leave one of them out", c.Model)
	case c.Tokens == nil:
		return cli.BadUsage("--from needs --tokens: how long a model goes on to train is for you to say")
	case c.Bandwidth != 0 && c.Step == 0:
		return cli.BadUsage("--bandwidth needs --step with --from: how long a step takes is for your learner to say; atoll doctor --learner CMD --try measures it")
	case c.OwnData:
		return cli.BadUsage("--own-data goes without saying with --from: learners bring their own data, unless --data names the run's text")
	case c.Context < 0:
		return cli.BadUsage("--context is %d; use 1 or more tokens of a row", c.Context)
	case shards.IsDir(c.Data):
		return cli.BadUsage("--data %s is a corpus, which only built-in models read: leave --from out, or pass the text", c.Data)
	}
	return checkOtherOptimizer(c.Optimizer, "a run made by --from")
}

// spec is what the flags choose of a run, but its links, and the model that adapters belong to.
func (c *NewCmd) spec(now time.Time) (s genesis.Spec, b base, err error) {
	s = genesis.Spec{
		Name: c.name(), Seed: c.Seed, CreatedMs: now.UnixMilli(), Context: c.Context, Batch: c.Batch, Optimizer: asked(c.Optimizer), LR: c.LR,
		H: c.H, Fragments: c.Fragments, LearnersPerRound: c.LearnersPerRound, Learners: c.Learners,
		WindowBytes: float64(c.UnionWindowSize), Profile: c.Profile,
	}
	if c.Tokens != nil {
		s.Tokens = uint64(*c.Tokens)
	}
	if name := asked(c.Codec); name != "" {
		if s.Codec, err = codec.Parse(name); err != nil {
			return s, b, err
		}
	}
	if c.From != "" {
		if s.From, err = genesis.ReadModel(c.From); err == nil {
			b, err = c.base(s.From)
		}
		if err == nil && s.From.Rows > 0 && c.Context > s.From.Rows {
			err = cli.BadUsage("--context is %d, and the model of %s takes rows of at most %d tokens: use fewer, or raise max_position_embeddings in its config.json, where its places are rotary", c.Context, c.From, s.From.Rows)
		}
	} else {
		s.Name = cmp.Or(s.Name, genesis.ModelLabel(c.model()))
		s.Model, err = genesis.ModelConfig(c.model())
	}
	if err != nil {
		return s, b, err
	}
	if most := len(s.Model.Specs()); c.From == "" && c.Fragments > most {
		return s, b, cli.BadUsage("--fragments is %d; the model has only %d tensors", c.Fragments, most)
	}
	s.Text, err = c.text(s)
	return s, b, err
}

// name is what people call the run, "" if that is left to the model.
func (c *NewCmd) name() string {
	if c.Name != "" || c.Dir == "" {
		return c.Name
	}
	path, err := filepath.Abs(c.Dir)
	if err != nil {
		return ""
	}
	return filepath.Base(path)
}

// base is the model that adapters belong to.
type base struct{ name, digest string }

// base puts the digest of the model that adapters belong to into their recipe.
func (c *NewCmd) base(m *genesis.Source) (b base, err error) {
	if !genesis.Adapters(m.Recipe) {
		if c.Base != "" {
			return b, cli.BadUsage("--base is the model of adapters, and %s has a whole model", c.From)
		}
		return b, nil
	}
	m.Recipe, b.name, b.digest, err = genesis.AddBase(m.Recipe, c.Base)
	if b.digest != "" {
		c.Base = b.name
		err = cmp.Or(err, m.AddFiles(b.name))
	}
	return b, err
}

// text is what --data names, as far as a run goes by it. It has to suit the model's context.
func (c *NewCmd) text(s genesis.Spec) (t genesis.Text, err error) {
	if c.From != "" && c.Data == "" {
		return t, nil // learners bring their own
	}
	if shards.IsDir(c.Data) {
		dir, err := shards.OpenDir(c.Data)
		if err != nil {
			return t, err
		}
		return genesis.Text{Name: dir.Manifest.Name, Train: int(dir.Manifest.Pass()), Own: c.OwnData, Corpus: genesis.ShardsOf(dir.Manifest)}, dir.Manifest.Fits(s.Model.Context)
	}
	text, err := corpus.Open(c.Data)
	if err != nil {
		return t, err
	}
	c.note = text.Note()
	t = genesis.Text{Name: text.Name(), SHA256: text.SHA256(), Train: len(text.Train()), Own: c.OwnData}
	if c.From != "" {
		return t, nil
	}
	return t, text.Fits(s.Model.Context)
}

// links is what --bandwidth and --step say of the machines of the run. A step of which nothing is said is timed here.
func (c *NewCmd) links(ctx context.Context, s genesis.Spec) (*genesis.Links, error) {
	g, err := s.Trained()
	if err != nil {
		return nil, err
	}
	l := &genesis.Links{BytesPerSecond: c.Bandwidth.BytesPerSecond(), StepSeconds: c.Step.Seconds(), FreeCores: !g.BuiltIn() || c.Step != 0 && g.Large()}
	if c.Step != 0 {
		return l, nil
	}
	among, _, err := trainer.Precisions(trainer.AutoPrecision)
	if err != nil {
		return nil, err
	}
	took, _, err := trainer.MeasureBest(ctx, trainer.Config{Model: g.Model, Batch: g.Batch, Optim: g.Inner.Optim()}, among, stepTimes, stepTimeFor, time.Now)
	l.StepSeconds = took.Step.Seconds()
	return l, err
}

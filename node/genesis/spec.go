package genesis

import (
	"cmp"
	"encoding/json"
	"fmt"

	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/tune"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/codec"
	"atoll/tensor/llama"
)

// Spec is what people choose of a new run. Everything else of its genesis follows from it, but who admits others; zero is what
// suits the rest.
type Spec struct {
	Name      string
	Model     llama.Config // a built-in one, with the vocabulary of bytes or that of the text
	From      *Source      // a model that somebody brings, in place of Model
	Text      Text
	Seed      uint64
	CreatedMs int64
	Tokens    uint64 // budget; 0 = the fewest with which a run of Learners is not short

	Context   int     // tokens of a row of From; 0 = what it takes, at most givenContext
	Batch     int     // rows of a step of a learner of usual speed; 0 = by the model's size
	Optimizer string  // "" = Muon, and AdamW with From
	LR        float64 // peak; 0 = what measured best

	H, Fragments, LearnersPerRound int        // 0 = what suits links, codec and model
	Codec                          codec.Kind // 0 = what suits links
	Learners                       int        // that are expected; 0 = 1
	Links                          *Links     // nil = nobody described them

	Window      uint32  // union window in rounds; 0 = by WindowBytes
	WindowBytes float64 // of the deltas of the union window, which each node keeps; 0 = of as many rounds as are of use
	Profile     string  // of the network: local, lan or wan; "" = wan
}

// Links is what is known of the machines of a run.
type Links struct {
	BytesPerSecond float64 // that each node's link carries, each way
	StepSeconds    float64 // of a step of a usual learner
	FreeCores      bool    // cores do not train, as beside a GPU
}

// Text is what learners train on.
type Text struct {
	Name   string
	SHA256 string // of a text of bytes; "" where learners have their own
	Own    bool   // each learner has a text of its own
	Train  int    // tokens to train on; 0 = not known
	Corpus *Shards
}

// Shards is a corpus that atoll data build made.
type Shards struct {
	Manifest, Tokenizer string // digests in hex
	Vocab               int
}

// ShardsOf is the corpus of a manifest, as far as a run goes by it.
func ShardsOf(m *shards.Manifest) *Shards {
	return &Shards{Manifest: m.Digest().String(), Tokenizer: m.Tokenizer.Digest.String(), Vocab: m.Tokenizer.Size}
}

// Expected is what a run that is made so will take.
type Expected struct {
	Links      *tune.Choice // what its links decided; nil where nobody described them
	Int4Bytes  float64      // per second that they would have to carry for int4, where they do not
	RoundBytes float64      // of the deltas of one round of all fragments
	Length     tune.Length  // zero where nobody knows how long the text is
}

// LinksError says that links do not carry what a run needs.
type LinksError struct{ error }

// usualLink is what links are taken to carry of which nothing is known, in bytes per second: 100 Mbit/s.
const usualLink = 100e6 / 8

// Make returns the genesis of a run and what it will take. It is a pure function, and the only maker of a genesis.
// The error says which of the choices cannot be.
func (s Spec) Make() (Genesis, Expected, error) {
	g, err := s.trained()
	if err != nil {
		return g, Expected{}, err
	}
	e, err := s.fold(&g)
	if err != nil {
		return g, e, err
	}
	return g, e, g.Validate()
}

// Trained is the genesis of the run as far as its learners go by it, for callers that time a step of theirs.
func (s Spec) Trained() (Genesis, error) {
	g, err := s.trained()
	if err == nil {
		g.Outer = s.outer(g).Resolved()
	}
	return g, err
}

// trained is what the run trains, on what and how, without its outer steps.
func (s Spec) trained() (g Genesis, err error) {
	g = Genesis{
		Rules: Rules, Name: s.Name, Model: s.Model, Seed: s.Seed, Batch: cmp.Or(s.Batch, defaultBatch(s.Model)),
	}
	if s.From != nil {
		s.From.describe(&g)
		g.Model.Context = cmp.Or(s.Context, g.Model.Context)
		g.Batch = cmp.Or(s.Batch, givenBatch)
	}
	if err := s.Text.describe(&g); err != nil {
		return g, err
	}
	if g.Inner.Optimizer, err = s.optimizer(); err != nil {
		return g, err
	}
	if s.From != nil {
		if g.Recipe, err = s.From.recipeWith(g.Inner.Optim()); err != nil {
			return g, err
		}
	}
	g.WayMs, err = wayOf(cmp.Or(s.Profile, "wan"))
	return g, err
}

// optimizer is the name of the inner optimizer.
func (s Spec) optimizer() (string, error) {
	usual := optimizer.NameMuon
	if s.From != nil {
		usual = optimizer.NameAdamW
	}
	return cmp.Or(s.Optimizer, usual), CheckOptimizer(s.Optimizer)
}

// outer is what is chosen of the outer step, where links decide nothing.
func (s Spec) outer(g Genesis) outer.Spec {
	fragments := usualFragments
	if g.BuiltIn() {
		fragments = defaultFragments(s.Model)
	}
	return outer.Spec{
		Fragments: cmp.Or(s.Fragments, fragments), Codec: cmp.Or(s.Codec, codec.Int4), H: s.H, LearnersPerRound: s.LearnersPerRound, Learners: max(s.Learners, 1),
		Budget: cmp.Or(s.Tokens, 1), CreatedMs: s.CreatedMs, OwnText: s.Text.Own || s.From != nil && s.Text.SHA256 == "",
	}
}

// fold decides the outer steps of a run.
func (s Spec) fold(g *Genesis) (e Expected, err error) {
	o := s.outer(*g)
	g.Outer = o.Resolved()
	if s.Links != nil {
		if e, err = s.suit(&o, *g); err != nil {
			return e, err
		}
	}
	if g.Outer = o.Resolved(); !g.snapshotFits() {
		g.Outer.NoMomentum = true // half of what joiners are given
	}
	if s.Fragments == 0 || !g.BuiltIn() {
		g.splitToFit()
	}
	e.RoundBytes = float64(min(g.Outer.Learners, g.Outer.LearnersPerRound)) * float64(g.Params()) * tune.BytesOf(g.Outer.Codec)
	sweep := e.RoundBytes / usualLink
	if e.Links != nil {
		sweep = e.Links.SweepSeconds
	}
	g.Outer.SweepMs = int64(min(1000*sweep, outer.MaxSweepMs))
	switch {
	case s.Window > 0:
		g.Outer.Window = s.Window
	case s.WindowBytes > 0:
		g.Outer.Window = outer.WindowOf(s.WindowBytes / e.RoundBytes)
	}
	g.Inner.LR = cmp.Or(s.LR, s.rate(*g))
	s.length(g, &e)
	return e, nil
}

// suit has the links decide what was left open.
func (s Spec) suit(o *outer.Spec, g Genesis) (e Expected, err error) {
	means := tune.Means{
		Params: g.Params(), Tensors: g.MostFragments(), Learners: o.Learners, LearnersPerRound: g.Outer.LearnersPerRound,
		StepSeconds: s.Links.StepSeconds, BytesPerSecond: s.Links.BytesPerSecond, Codec: s.Codec, FreeCores: s.Links.FreeCores,
	}
	if s.LearnersPerRound == 0 {
		means.LeastLearnersPerRound = outer.LeastQuorum
	}
	choice, err := tune.Choose(means)
	if err != nil {
		return e, LinksError{err}
	}
	if choice.Codec != s.Codec && choice.Codec != codec.Int4 {
		means.Codec = g.Outer.Codec
		e.Int4Bytes = means.Int4BytesPerSecond()
	}
	o.Codec, o.H, o.LearnersPerRound, o.Fragments = choice.Codec, choice.H, choice.LearnersPerRound, choice.Fragments
	e.Links = &choice
	return e, nil
}

// rate is the peak learning rate that measured best.
func (s Spec) rate(g Genesis) float64 {
	if s.From != nil {
		return givenRate
	}
	return RateWith(g, true)
}

// length says how far the budget goes, and makes one where none was given.
func (s Spec) length(g *Genesis, e *Expected) {
	if !g.BuiltIn() {
		return
	}
	r := tune.Run{
		Params: g.Params(), Budget: s.Tokens, StepTokens: g.Batch * g.Model.Context,
		H: g.Outer.H, Fixed: e.Links != nil, Learners: max(s.Learners, 1), Text: s.Text.Train,
	}
	if s.Tokens == 0 {
		r.Budget = r.Enough()
		g.Outer.Budget = r.Budget
	}
	e.Length = tune.LengthOf(r)
}

// describe puts the text into a genesis that has its model and batch.
func (t Text) describe(g *Genesis) error {
	if t.Corpus == nil {
		g.Data = Data{Name: t.Name, SHA256: t.SHA256}
		if t.Own {
			g.Data = Data{Name: OwnText}
		}
		if !g.BuiltIn() || g.Data.Name == "" { // it may be a corpus that nobody has read yet
			return nil
		}
		return g.fitBytes()
	}
	if !g.BuiltIn() {
		return fmt.Errorf("a corpus is for built-in models, and %s brings its own tokenizer: pass the text", g.Name)
	}
	c := t.Corpus
	if err := g.fitVocab(c.Vocab); err != nil {
		return err
	}
	g.setCorpus(t.Name, c.Manifest, c.Tokenizer, c.Vocab)
	if t.Own {
		g.Data = Data{Name: OwnText}
	}
	return nil
}

// Source is a model in a folder of Hugging Face's form, as far as a run goes by it.
type Source struct {
	Name   string
	Recipe json.RawMessage // what learners have to agree on but the optimizer
	Layout Layout
	First  []string // of the lists of the chunks of its values
	Files  []File
	Beside map[string][]byte // what is in Files, by name
	Rows   int               // the most tokens of a row that it takes; 0 = not known
	Notes  []string          // which tensors the run does not train, and what learners need
}

func (s *Source) describe(g *Genesis) {
	g.Name = cmp.Or(g.Name, s.Name)
	g.Layout, g.First, g.Files = s.Layout, s.First, s.Files
	g.Model = llama.Config{Context: min(cmp.Or(s.Rows, givenContext), givenContext)}
}

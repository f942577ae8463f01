package genesis

import (
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/tensor/llama"
)

// format1 is the document of runs that fixed their times. They go on with these, and
// with the RunID that they have. Nothing here changes any more.
type format1 struct {
	Format    int
	Name      string
	Model     llama.Config
	Tokenizer string
	Seed      uint64
	Batch     int
	Inner     Inner
	Outer     outer1
	BeatMs    int64
	QuietMs   int64
	Data      Data
}

// outer1 has the fields of outer.Params at that time.
type outer1 struct {
	Fragments              int
	H, HMin                int
	Eta, Mu                float64
	Merge                  string
	ClipFactor, RefDecay   float64
	StaleFactor, MaxShare  float64
	MaxSteps               uint32
	MaxTokensPerStep       uint64
	Codec                  codec.Kind
	WindowAccept           uint32
	WindowUnion            uint32
	Answerers, Quorum      int
	Budget                 uint64
	MinRoundMs, CreatedMs  int64
	GraceMinMs, GraceMaxMs int64
	Overwrite              bool
}

// params are the fields as the rest of the program has them.
func (o outer1) params() outer.Params {
	return outer.Params{
		Fragments: o.Fragments, H: o.H, HMin: o.HMin, Eta: o.Eta, Mu: o.Mu, Merge: o.Merge,
		ClipFactor: o.ClipFactor, RefDecay: o.RefDecay, StaleFactor: o.StaleFactor, MaxShare: o.MaxShare,
		MaxSteps: o.MaxSteps, MaxTokensPerStep: o.MaxTokensPerStep, Codec: o.Codec, WindowAccept: o.WindowAccept, WindowUnion: o.WindowUnion,
		Answerers: o.Answerers, Quorum: o.Quorum, Budget: o.Budget, MinRoundMs: o.MinRoundMs, CreatedMs: o.CreatedMs,
		GraceMinMs: o.GraceMinMs, GraceMaxMs: o.GraceMaxMs, Overwrite: o.Overwrite,
	}
}

// outer1Of is the way back.
func outer1Of(p outer.Params) outer1 {
	return outer1{
		Fragments: p.Fragments, H: p.H, HMin: p.HMin, Eta: p.Eta, Mu: p.Mu, Merge: p.Merge,
		ClipFactor: p.ClipFactor, RefDecay: p.RefDecay, StaleFactor: p.StaleFactor, MaxShare: p.MaxShare,
		MaxSteps: p.MaxSteps, MaxTokensPerStep: p.MaxTokensPerStep, Codec: p.Codec, WindowAccept: p.WindowAccept, WindowUnion: p.WindowUnion,
		Answerers: p.Answerers, Quorum: p.Quorum, Budget: p.Budget, MinRoundMs: p.MinRoundMs, CreatedMs: p.CreatedMs,
		GraceMinMs: p.GraceMinMs, GraceMaxMs: p.GraceMaxMs, Overwrite: p.Overwrite,
	}
}

// genesis is the document as the rest of the program sees it.
func (f format1) genesis() Genesis {
	return Genesis{
		Format: f.Format, Rules: Rules, Name: f.Name, Admission: Open, Model: f.Model, Init: Seeded,
		Tokenizer: f.Tokenizer, Seed: f.Seed, Batch: f.Batch, Inner: f.Inner, Outer: f.Outer.params(), Data: f.Data,
		WayMs: formerWayMs, BeatMs: f.BeatMs, QuietMs: f.QuietMs,
	}
}

// formerWayMs is the first guess for runs that made none: that of the wan.
const formerWayMs = 100

// former is the document of a genesis of format 1.
func (g Genesis) former() format1 {
	return format1{
		Format: g.Format, Name: g.Name, Model: g.Model, Tokenizer: g.Tokenizer, Seed: g.Seed, Batch: g.Batch,
		Inner: g.Inner, Outer: outer1Of(g.Outer), BeatMs: g.BeatMs, QuietMs: g.QuietMs, Data: g.Data,
	}
}

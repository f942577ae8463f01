package outer

import (
	"math"
	"strings"
	"testing"

	"atoll/tensor/codec"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := Plain(24, 1e9, 1).Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for field, change := range map[string]func(*Params){
		"Fragments":        func(p *Params) { p.Fragments = 0 },
		"H":                func(p *Params) { p.H = 0 },
		"HMin":             func(p *Params) { p.HMin = p.H + 1 },
		"Eta":              func(p *Params) { p.Eta = math.NaN() },
		"Mu":               func(p *Params) { p.Mu = 1 },
		"ClipFactor":       func(p *Params) { p.ClipFactor = 0 },
		"RefDecay":         func(p *Params) { p.RefDecay = -0.1 },
		"MaxShare":         func(p *Params) { p.MaxShare = 0 },
		"MaxSteps":         func(p *Params) { p.MaxSteps = uint32(p.H) - 1 },
		"MaxTokensPerStep": func(p *Params) { p.MaxTokensPerStep = 1 << 33 },
		"Codec":            func(p *Params) { p.Codec = codec.Kind(99) },
		"WindowAccept":     func(p *Params) { p.WindowAccept = 0 },
		"WindowUnion":      func(p *Params) { p.WindowUnion = p.WindowAccept - 1 },
		"LearnersPerRound": func(p *Params) { p.LearnersPerRound = 0 },
		"Quorum":           func(p *Params) { p.MaxShare = 0.5 },
		"Budget":           func(p *Params) { p.Budget = 0 },
		"MinRoundMs":       func(p *Params) { p.MinRoundMs = -1 },
		"CreatedMs":        func(p *Params) { p.CreatedMs = -1 },
		"GraceMinMs":       func(p *Params) { p.GraceMinMs = -1 },
		"GraceMaxMs":       func(p *Params) { p.GraceMaxMs = p.GraceMinMs - 1 },
	} {
		p := Plain(8, 1e6, 0)
		change(&p)
		if err := p.Validate(); err == nil || !strings.HasPrefix(err.Error(), "outer: "+field+" is ") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// What is left open is no choice, and makes no document.
func TestSpecValidateNamesTheField(t *testing.T) {
	if err := (Spec{Fragments: 1, Budget: 1}).Resolved().Validate(); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*Spec){
		"Fragments":        func(s *Spec) { s.Fragments = 0 },
		"Codec":            func(s *Spec) { s.Codec = 0 },
		"H":                func(s *Spec) { s.H = 0 },
		"LearnersPerRound": func(s *Spec) { s.LearnersPerRound = LeastQuorum - 1 },
		"Learners":         func(s *Spec) { s.Learners = 0 },
		"Budget":           func(s *Spec) { s.Budget = maxBudget + 1 },
		"CreatedMs":        func(s *Spec) { s.CreatedMs = -1 },
		"SweepMs":          func(s *Spec) { s.SweepMs = MaxSweepMs + 1 },
		"Window":           func(s *Spec) { s.Window = LeastWindow - 1 },
	} {
		s := Spec{Fragments: 1, Budget: 1}.Resolved()
		change(&s)
		if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), "outer: "+field+" is ") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestCheckNamesWhatIsInvalid(t *testing.T) {
	p := toyParams()
	for want, change := range map[string]func(*Delta){
		"":         func(*Delta) {},
		"fragment": func(d *Delta) { d.Fragment = 1 },
		"base 5":   func(d *Delta) { d.Base = d.Round },
		"0 steps":  func(d *Delta) { d.Steps = 0 },
		"steps":    func(d *Delta) { d.Steps = p.MaxSteps + 1 },
		"0 tokens": func(d *Delta) { d.Tokens = 0 },
		"tokens":   func(d *Delta) { d.Tokens = uint64(d.Steps)*p.MaxTokensPerStep + 1 },
		"codec":    func(d *Delta) { d.Codec = codec.Sparse8 },
		"payload":  func(d *Delta) { d.Size = 0 },
	} {
		d := contribution(t, p, 1, 5, vector(1, 4)).Delta
		change(&d)
		err := p.Check(d)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
}

func TestCheckSizeIsTheCodecsBound(t *testing.T) {
	p, f := Plain(1, 1, 0), toyFragment()
	most := codec.MaxSize(p.Codec, f.Len)
	for size, valid := range map[int]bool{0: false, 1: true, most: true, most + 1: false} {
		if err := p.CheckSize(f, size); (err == nil) != valid {
			t.Errorf("%d bytes of at most %d: %v", size, most, err)
		}
	}
}

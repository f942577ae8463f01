package outer

import (
	"math"
	"strings"
	"testing"

	"atoll/tensor/codec"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := Defaults(24, 1e9, 1).Validate(); err != nil {
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
		"Merge":            func(p *Params) { p.Merge = "median" },
		"ClipFactor":       func(p *Params) { p.ClipFactor = 0 },
		"RefDecay":         func(p *Params) { p.RefDecay = -0.1 },
		"StaleFactor":      func(p *Params) { p.StaleFactor = math.Inf(1) },
		"MaxShare":         func(p *Params) { p.MaxShare = 0 },
		"MaxSteps":         func(p *Params) { p.MaxSteps = uint32(p.H) - 1 },
		"MaxTokensPerStep": func(p *Params) { p.MaxTokensPerStep = 1 << 33 },
		"Codec":            func(p *Params) { p.Codec = codec.Kind(99) },
		"WindowAccept":     func(p *Params) { p.WindowAccept = 0 },
		"WindowUnion":      func(p *Params) { p.WindowUnion = p.WindowAccept - 1 },
		"Answerers":        func(p *Params) { p.Answerers = 0 },
		"Quorum":           func(p *Params) { p.MaxShare = 0.5 },
		"Budget":           func(p *Params) { p.Budget = 0 },
		"MinRoundMs":       func(p *Params) { p.MinRoundMs = -1 },
		"CreatedMs":        func(p *Params) { p.CreatedMs = -1 },
		"GraceMinMs":       func(p *Params) { p.GraceMinMs = -1 },
		"GraceMaxMs":       func(p *Params) { p.GraceMaxMs = p.GraceMinMs - 1 },
	} {
		p := Defaults(8, 1e6, 0)
		change(&p)
		if err := p.Validate(); err == nil || !strings.HasPrefix(err.Error(), "outer: "+field+" is ") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

func TestCheckNamesWhatIsInvalid(t *testing.T) {
	p := toyParams()
	for want, change := range map[string]func(*Delta){
		"":          func(*Delta) {},
		"fragment":  func(d *Delta) { d.Fragment = 1 },
		"base 5":    func(d *Delta) { d.Base = d.Round },
		"0 steps":   func(d *Delta) { d.Steps = 0 },
		"steps":     func(d *Delta) { d.Steps = p.MaxSteps + 1 },
		"0 tokens":  func(d *Delta) { d.Tokens = 0 },
		"tokens":    func(d *Delta) { d.Tokens = uint64(d.Steps)*p.MaxTokensPerStep + 1 },
		"precision": func(d *Delta) { d.Precision = 0 },
		"codec":     func(d *Delta) { d.Codec = codec.Sparse8 },
		"payload":   func(d *Delta) { d.Size = 0 },
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
	p, f := Defaults(1, 1, 0), toyFragment()
	most := codec.MaxSize(p.Codec, f.Len)
	for size, valid := range map[int]bool{0: false, 1: true, most: true, most + 1: false} {
		if err := p.CheckSize(f, size); (err == nil) != valid {
			t.Errorf("%d bytes of at most %d: %v", size, most, err)
		}
	}
}

// SetH makes parameters that are valid, however large or small H is.
func TestSetH(t *testing.T) {
	for _, c := range []struct {
		h, hmin  int
		maxSteps uint32
		merge    string
		eta, mu  float64
	}{
		{1, 1, 1024, MergeMean, 1, 0}, {8, 2, 1024, MergeMean, 1, 0}, {9, 2, 1024, MergeClip, 0.8, 0.6}, {24, 6, 1024, MergeClip, 0.8, 0.6}, {25, 6, 1050, MergeClip, 0.8, 0.6},
		{5000, 1250, 210_000, MergeClip, 0.8, 0.6}, {MaxH, MaxH / 4, MaxStepsLimit, MergeClip, 0.8, 0.6},
	} {
		p := Defaults(4, 1, 0)
		p.SetH(c.h)
		if p.H != c.h || p.HMin != c.hmin || p.MaxSteps != c.maxSteps || p.Merge != c.merge || p.Eta != c.eta || p.Mu != c.mu {
			t.Errorf("H %d: %+v", c.h, p)
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		k             codec.Kind
		h             int
		asked         string // "" = what SetH chooses
		merge         string
		eta, momentum float64
	}{
		{codec.Sparse, 4, "", MergeRDA, 1, 0}, {codec.Sparse, 24, "", MergeRDA, 1, 0},
		{codec.Sparse8, 8, "", MergeRDA, 1, 0}, {codec.Sparse8, 9, "", MergeClip, 0.8, 0.6},
		{codec.Sparse, 24, MergeClip, MergeClip, 1, 0}, {codec.Sparse8, 24, MergeMean, MergeMean, 0.8, 0.6},
	} {
		p := Defaults(4, 1, 0)
		p.Codec = c.k
		p.SetH(c.h)
		if c.asked != "" {
			p.SetMerge(c.asked)
		}
		if p.Merge != c.merge || p.HMin != c.h/4 || p.Eta != c.eta || p.Mu != c.momentum {
			t.Errorf("%+v: %+v", c, p)
		}
	}
	p := Defaults(4, 1, 0)
	before := p
	p.SetH(p.H)
	before.MaxPace = p.MaxPace // has no bound by itself
	if p.SetMerge(before.Merge); p != before {
		t.Errorf("the default H and merge set again: %+v, as they were: %+v", p, before)
	}
}

// Where learners take turns a round is a step for the share of them that answers, however often
// that is said. Where all answer it is a whole one.
func TestTurnsTakeShorterSteps(t *testing.T) {
	for _, merge := range []string{MergeClip, MergeRDA} {
		whole := Defaults(4, 1, 0)
		whole.SetH(24)
		whole.SetMerge(merge)
		for learners, share := range map[int]float64{1: 1, 16: 1, 32: 0.5, 64: 0.25, 1600: 0.01} {
			p := whole
			p.SetLearners(learners)
			p.SetLearners(learners)
			if want := whole.Eta * share; math.Abs(p.Eta-want) > 1e-12 || p.Mu != whole.Mu || p.Validate() != nil {
				t.Errorf("%s, 16 of %d answer: eta %v and mu %v, want %v and %v (%v)", merge, learners, p.Eta, p.Mu, want, whole.Mu, p.Validate())
			}
		}
	}
}

// SetLearners makes room for as many steps as learners make between two turns, and
// leaves alone what has it.
func TestSetLearners(t *testing.T) {
	for _, c := range []struct {
		h, answerers, learners int
		want                   uint32
	}{
		{24, 16, 1, 1024}, {24, 16, 16, 1024}, {24, 16, 100, 1024}, {24, 16, 1000, 4 * 63 * 24},
		{4, 16, 1000, 1024}, {100, 16, 1000, 4 * 63 * 100}, {24, 64, 1000, 4 * 16 * 24}, {24, 16, 1 << 60, MaxStepsLimit},
	} {
		p := Defaults(4, 1, 0)
		p.H, p.HMin, p.Answerers = c.h, 1, c.answerers
		if p.SetLearners(c.learners); p.MaxSteps != c.want {
			t.Errorf("%+v: MaxSteps is %d", c, p.MaxSteps)
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
}

package llama

import (
	"math"
	"runtime"
	"strings"
	"testing"

	"atoll/tensor"
)

func TestNamed(t *testing.T) {
	for name, params := range map[string]int{"tiny": 824448, "small": 10720128, "base": 88099584} {
		c, ok := Named(name)
		if !ok || c.Validate() != nil {
			t.Errorf("%s: found %v, %v", name, ok, c.Validate())
		}
		if c.Params() != params {
			t.Errorf("%s has %d parameters, want %d", name, c.Params(), params)
		}
	}
	if _, ok := Named("huge"); ok {
		t.Error("there is no huge model")
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for field, spoil := range map[string]func(*Config){
		"Vocab":        func(c *Config) { c.Vocab = 0 },
		"Hidden":       func(c *Config) { c.Hidden = 1 << 30 },
		"Layers":       func(c *Config) { c.Layers = -1 },
		"Heads":        func(c *Config) { c.Heads = 3 },
		"KVHeads":      func(c *Config) { c.KVHeads = 3 },
		"Intermediate": func(c *Config) { c.Intermediate = 0 },
		"Context":      func(c *Config) { c.Context = 0 },
		"RopeTheta":    func(c *Config) { c.RopeTheta = 0 },
		"NormEps":      func(c *Config) { c.NormEps = 0 },
	} {
		c := Tiny
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "model "+field+" is") {
			t.Errorf("spoilt %s: %v", field, err)
		}
	}
}

func TestOddHeadSize(t *testing.T) {
	c := Tiny
	c.Hidden, c.Heads = 12, 4
	if c.Validate() == nil {
		t.Error("heads of 3 cannot be rotated in halves")
	}
}

// TestSpecsJoin: the model multiplies by q, k, v and by gate, up as one matrix.
func TestSpecsJoin(t *testing.T) {
	c := Tiny
	c.KVHeads, c.Tied = 2, false
	p := NewParams(c)
	if len(p.Data) != c.Params() {
		t.Errorf("slab of %d values for %d parameters", len(p.Data), c.Params())
	}
	view := func(part string) tensor.View {
		v, ok := p.View("model.layers.1." + part + ".weight")
		if !ok {
			t.Fatalf("no tensor %s", part)
		}
		return v
	}
	follow := func(a, b tensor.View) {
		if a.Offset+a.Len != b.Offset {
			t.Errorf("%s does not follow %s", b.Name, a.Name)
		}
	}
	follow(view("self_attn.q_proj"), view("self_attn.k_proj"))
	follow(view("self_attn.k_proj"), view("self_attn.v_proj"))
	follow(view("mlp.gate_proj"), view("mlp.up_proj"))
	if head, _ := p.View(headName); &c.headOf(p)[0] != &p.Of(head)[0] {
		t.Error("an untied head is not lm_head")
	}
}

func TestWorkspaceBytes(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m := NewModel(Tiny, 3)
	runtime.ReadMemStats(&after)
	got, want := float64(after.TotalAlloc-before.TotalAlloc), float64(Tiny.WorkspaceBytes(m.batch))
	if math.Abs(got/want-1) > 0.01 { // the allocator rounds up, and there are the slices themselves
		t.Errorf("a model of 3 windows allocates %v bytes, expected %v", got, want)
	}
	if a, b := Tiny.WorkspaceBytes(1), Tiny.WorkspaceBytes(8); b < 6*a {
		t.Errorf("8 windows need %d bytes, 1 needs %d", b, a)
	}
}

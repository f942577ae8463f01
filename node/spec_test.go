package node

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"math"
	"reflect"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/tensor/llama"
)

// One test for each clause of gossip/wire/SPEC.md that is about the genesis
// document.
func TestSpec(t *testing.T) {
	spectest.Run(t, "J", map[string]spectest.Clause{
		"J-1": specDocument, "J-2": specJSON, "J-3": specRunID, "J-4": specOneEncoding, "J-5": specTravels, "J-6": specTensors,
		"J-7": specInit, "J-8": specJoinLink, "J-9": specOptimizer,
	})
}

// keysOf lists the keys of a JSON object in order, those of objects inside
// behind a dot.
func keysOf(t testing.TB, doc string) (keys []string) {
	d := json.NewDecoder(strings.NewReader(doc))
	outer, key := "", true
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		switch token {
		case json.Delim('{'):
			if depth++; depth == 2 {
				outer = strings.TrimSuffix(keys[len(keys)-1], ".") + "."
				keys = keys[:len(keys)-1]
			}
			key = true
		case json.Delim('}'):
			if depth--; depth == 0 {
				return keys
			}
			outer, key = "", true
		default:
			if key {
				keys = append(keys, outer+token.(string))
			}
			key = !key
		}
	}
}

func specDocument(t *testing.T, s *spectest.Spec) {
	doc := s.Text(t, "genesis")
	rows := s.Table(t, "genesis")
	for i, key := range keysOf(t, doc) {
		if i >= len(rows) || rows[i][0] != key {
			t.Fatalf("key %d is %s, the text says %v", i, key, rows[min(i, len(rows)-1)])
		}
	}
	g, err := DecodeGenesis([]byte(doc))
	if err != nil || !reflect.DeepEqual(g, fixedGenesis()) {
		t.Errorf("decoded %+v, %v", g, err)
	}
	if got := string(g.Encode()); got != doc {
		t.Errorf("encoded %s", got)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(doc)); err != nil || compact.String() != doc {
		t.Errorf("white space in %s", doc)
	}
}

func specJSON(t *testing.T, _ *spectest.Spec) {
	g := fixedGenesis()
	g.Name = `<a> & "é"`
	g.Inner.Eps, g.Inner.LR, g.Inner.Clip = 1e-6, 9.5e-7, 1
	b := string(g.Encode())
	for _, want := range []string{`"Name":"\u003ca\u003e \u0026 \"é\""`, `"Eps":0.000001`, `"LR":9.5e-7`, `"Clip":1,`, `"NormEps":0.00001`, `"Seed":42,`} {
		if !strings.Contains(b, want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}

func specRunID(t *testing.T, s *spectest.Spec) {
	want := s.Hex(t, "genesis run")
	if d := wire.Sum([]byte(s.Text(t, "genesis"))); !bytes.Equal(d[:], want) {
		t.Errorf("digest %x, the text says %x", d, want)
	}
	if run := fixedGenesis().RunID(); !bytes.Equal(run[:], want) {
		t.Errorf("RunID %x, the text says %x", run, want)
	}
}

func specOneEncoding(t *testing.T, s *spectest.Spec) {
	doc := s.Text(t, "genesis")
	for name, b := range map[string]string{
		"white space":     strings.Replace(doc, `,"Name"`, `, "Name"`, 1),
		"an exponent":     strings.Replace(doc, `"Eps":1e-8`, `"Eps":1e-08`, 1),
		"a longer number": strings.Replace(doc, `"LR":0.002`, `"LR":0.0020`, 1),
		"a plain <":       strings.Replace(doc, `\u003c`, `<`, 1),
		"an unknown key":  strings.Replace(doc, `{"Format":1`, `{"Format":1,"More":1`, 1),
		"another format":  strings.Replace(doc, `"Format":1`, `"Format":2`, 1),
		"no batch":        strings.Replace(doc, `"Batch":4`, `"Batch":0`, 1),
		"bytes behind":    doc + " ",
	} {
		if b == doc {
			t.Fatalf("%s: nothing is changed", name)
		}
		if _, err := DecodeGenesis([]byte(b)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func specTravels(t *testing.T, s *spectest.Spec) {
	g := fixedGenesis()
	g.Model.Layers = 100
	g.Outer.Fragments = int(s.Number(t, "limits", "MaxFragments"))
	if err := g.Validate(); err != nil {
		t.Error(err)
	}
	g.Outer.Fragments++
	if g.Validate() == nil {
		t.Error("more fragments than a beat has room for")
	}
	// One fragment of more than 64 MiB in f32, and of less in int4.
	g = fixedGenesis()
	g.Model = llama.Small
	g.Model.Layers, g.Outer.Fragments = 12, 1
	if err := g.Validate(); err != nil {
		t.Error(err)
	}
	if g.Outer.Codec = 1; g.Validate() == nil {
		t.Errorf("a payload of %d values in f32", g.Model.Params())
	}
}

func specTensors(t *testing.T, _ *spectest.Spec) {
	c := llama.Config{Vocab: 300, Hidden: 16, Layers: 2, Heads: 4, KVHeads: 2, Intermediate: 24, Context: 8, RopeTheta: 1, NormEps: 1}
	want := [][]any{{"model.embed_tokens", 300, 16}}
	for _, layer := range []string{"model.layers.0.", "model.layers.1."} {
		want = append(want, []any{layer + "input_layernorm", 16}, []any{layer + "self_attn.q_proj", 16, 16},
			[]any{layer + "self_attn.k_proj", 8, 16}, []any{layer + "self_attn.v_proj", 8, 16}, []any{layer + "self_attn.o_proj", 16, 16},
			[]any{layer + "post_attention_layernorm", 16}, []any{layer + "mlp.gate_proj", 24, 16}, []any{layer + "mlp.up_proj", 24, 16},
			[]any{layer + "mlp.down_proj", 16, 24})
	}
	want = append(want, []any{"model.norm", 16}, []any{"lm_head", 300, 16})
	for i, spec := range c.Specs() {
		got := []any{strings.TrimSuffix(spec.Name, ".weight")}
		for _, d := range spec.Shape {
			got = append(got, d)
		}
		if !reflect.DeepEqual(got, want[i]) {
			t.Errorf("tensor %d is %v, by the text %v", i, got, want[i])
		}
	}
	c.Tied = true
	if n := len(c.Specs()); n != len(want)-1 {
		t.Errorf("%d tensors with a tied head", n)
	}
}

// splitmix is element i of a stream, by the text.
func splitmix(s, i uint64) uint64 {
	z := s + (i+1)*0x9e3779b97f4a7c15
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	z *= 0x94d049bb133111eb
	return z ^ z>>31
}

func specInit(t *testing.T, s *spectest.Spec) {
	g := fixedGenesis()
	slab := llama.NewParams(g.Model)
	for _, v := range slab.Views {
		name := fnv.New64a()
		name.Write([]byte(v.Name))
		stream := splitmix(g.Seed, 0) ^ name.Sum64()
		std := 0.02
		if strings.Contains(v.Name, "o_proj") || strings.Contains(v.Name, "down_proj") {
			std /= math.Sqrt(2 * float64(g.Model.Layers))
		}
		scale := std / math.Sqrt(1<<32-1)
		for i := range slab.Of(v) {
			sum := 0
			for part := range uint64(12) {
				sum += int(splitmix(stream, 3*uint64(i)+part/4) >> (16 * (part % 4)) & 0xffff)
			}
			if slab.Of(v)[i] = float32(float64(sum-393210) * scale); len(v.Shape) == 1 {
				slab.Of(v)[i] = 1
			}
		}
	}
	states := s.Hex(t, "genesis states")
	for p, tip := range g.Tips() {
		anchor := make([]float32, len(tip.Anchor))
		g.Plan()[p].Gather(slab.Data, anchor)
		if !reflect.DeepEqual(anchor, tip.Anchor) {
			t.Errorf("fragment %d begins with other values", p)
		}
		if want := states[32*p : 32*p+32]; !bytes.Equal(tip.State[:], want) {
			t.Errorf("fragment %d has state %x, the text says %x", p, tip.State, want)
		}
	}
}

func specJoinLink(t *testing.T, s *spectest.Spec) {
	const peer = "/ip4/192.0.2.1/tcp/4001/p2p/12D3KooWK99VoVxNE7XzyBwXEzW7xhK7Gpv85r9F3V3fyKSUKPH5"
	text := "atoll:" + hex.EncodeToString(s.Hex(t, "genesis run"))
	many := strings.Repeat(","+peer, 32)
	for link, ok := range map[string]bool{
		text: true, text + "," + peer: true, text + many: true, text + many + "," + peer: false,
		text[1:]: false, text[:len(text)-1]: false, text + ",/ip4/192.0.2.1/tcp/4001": false,
	} {
		if l, err := ParseLink(link); (err == nil) != ok || ok && l.String() != link {
			t.Errorf("%s: %v", link, err)
		}
	}
}

func specOptimizer(t *testing.T, s *spectest.Spec) {
	doc := s.Text(t, "genesis")
	for more, ok := range map[string]bool{
		``: true, `,"Optimizer":"muon"`: true, `,"Optimizer":"muon","Momentum":0.5`: true,
		`,"Optimizer":"muon","Momentum":0`: false, `,"Optimizer":"muon","Momentum":1`: false, `,"Optimizer":"muon","Momentum":-0.5`: false,
		`,"Momentum":0.5,"Optimizer":"muon"`: false, `,"Momentum":0.5`: false, `,"Optimizer":""`: false, `,"Optimizer":"adamw"`: false,
	} {
		b := strings.Replace(doc, `"FinalFraction":0.1`, `"FinalFraction":0.1`+more, 1)
		g, err := DecodeGenesis([]byte(b))
		if (err == nil) != ok {
			t.Errorf("%s: error %v", more, err)
		}
		if ok && !reflect.DeepEqual(g.Tips(), fixedGenesis().Tips()) {
			t.Errorf("%s: the run begins with other values", more)
		}
	}
}

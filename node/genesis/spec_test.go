package genesis

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/node/joinlink"
	"atoll/tensor"
	"atoll/tensor/codec"
	"atoll/tensor/llama"
)

// One test for each clause of gossip/wire/SPEC.md that is about the genesis
// document.
func TestSpec(t *testing.T) {
	spectest.Run(t, "J", map[string]spectest.Clause{
		"J-1": specDocument, "J-2": specText, "J-2.2": specIntegers, "J-2.3": specNumbers, "J-3": specRunID, "J-4": specOneEncoding,
		"J-4.2": specRanges, "J-4.3": specHeads, "J-4.4": specNames, "J-4.5": specWords, "J-4.6": specStep, "J-4.7": specOwners,
		"J-5": specTravels, "J-5.2": specAllTips, "J-6": specTensors, "J-6.2": specTied, "J-7": specOnes, "J-7.2": specSplitmix,
		"J-7.3": specStreams, "J-7.4": specProposal, "J-7.5": specInit, "J-8": specJoinLink, "J-8.2": specJoinLink, "J-9": specFollows, "J-9.2": specInner,
		"J-10": specLayout, "J-10.2": specEntries, "J-10.3": specLayout, "J-10.4": specBeside, "J-10.5": specBeside,
		"J-10.6": specPieces, "J-10.7": specPieces, "J-10.8": specPieces, "J-10.9": specPieces, "J-10.10": specTies, "J-10.11": specRows,
		"J-11": specFirstKey, "J-11.2": specOtherFirst, "J-11.3": specFirst, "J-11.4": specFirst, "J-11.5": specGiven,
		"J-12": specCorpus, "J-12.2": specCorpus, "J-12.3": specOneText, "J-12.4": specOwnCorpus,
		"J-13": specFiles, "J-13.2": specOtherFiles, "J-13.3": specFileNames,
	})
}

// keysOf lists the keys of a JSON object in order, with keys of inner objects
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
		case json.Delim('['):
		case json.Delim(']'):
			key = true
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
	g, err := Decode([]byte(doc))
	if err != nil || !reflect.DeepEqual(g, fixedGenesis()) {
		t.Errorf("decoded %+v, %v", g, err)
	}
	if got := string(g.Encode()); got != doc {
		t.Errorf("encoded %s", got)
	}
	specTypes(t, doc, rows)
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(doc)); err != nil || compact.String() != doc {
		t.Errorf("white space in %s", doc)
	}
}

func specOwners(t *testing.T, _ *spectest.Spec) {
	some := func(n int) (keys owners) {
		for i := range n {
			keys = append(keys, wire.PeerID{byte(i + 1)})
		}
		return keys
	}
	genesisVerdicts(t, true, func(g *Genesis) { g.Owners = some(1) }, func(g *Genesis) { g.Owners = some(16) })
	genesisVerdicts(t, false, func(g *Genesis) { g.Owners = some(17) }, func(g *Genesis) { g.Owners = append(some(2), some(1)...) })
	g := fixedGenesis()
	g.Owners = some(1)
	doc := string(g.Encode())
	if want := `"Owners":["01` + strings.Repeat("00", 31) + `"],`; !strings.Contains(doc, want) {
		t.Errorf("no %s in %s", want, doc)
	}
	for name, bad := range map[string]string{"upper case": strings.Replace(doc, `["01`, `["0A`, 1), "shorter": strings.Replace(doc, `["01`, `["`, 1)} {
		if _, err := Decode([]byte(bad)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// encoded fails unless the genesis, changed, has each text and reads back.
func encoded(t *testing.T, change func(g *Genesis), texts ...string) {
	t.Helper()
	g := fixedGenesis()
	change(&g)
	b := g.Encode()
	for _, want := range texts {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
	if back, err := Decode(b); err != nil || !reflect.DeepEqual(back, g) {
		t.Errorf("read back %+v, %v", back, err)
	}
}

func specText(t *testing.T, _ *spectest.Spec) {
	encoded(t, func(g *Genesis) { g.Name = `<a> & "é" \ / 漢 😀 '` + "`" }, `"Name":"\u003ca\u003e \u0026 \"é\" \\ / 漢 😀 '`+"`"+`"`)
}

func specIntegers(t *testing.T, _ *spectest.Spec) {
	encoded(t, func(g *Genesis) { g.Seed, g.Outer.Budget = math.MaxUint64, 1<<62 }, `"Seed":18446744073709551615,`, `"Budget":4611686018427387904,`, `"Codec":4,`)
	doc := string(fixedGenesis().Encode())
	for _, other := range []string{"4.0", "4e0", "0x4", "04", "+4"} {
		if _, err := Decode([]byte(strings.Replace(doc, `"Batch":4`, `"Batch":`+other, 1))); err == nil {
			t.Errorf("%s is taken", other)
		}
	}
}

func specNumbers(t *testing.T, _ *spectest.Spec) {
	for x, want := range map[float64]string{
		1e-6: "0.000001", 9.5e-7: "9.5e-7", 1e-8: "1e-8", 1e-5: "0.00001", 1: "1", 0.1: "0.1", 1.0 / 3: "0.3333333333333333", 1e-100: "1e-100",
	} {
		encoded(t, func(g *Genesis) { g.Model.NormEps = x }, `"NormEps":`+want+`,`)
	}
	for x, want := range map[float64]string{1e21: "1e+21", 1.5e300: "1.5e+300", 1e20: "100000000000000000000", 10000: "10000"} {
		encoded(t, func(g *Genesis) { g.Model.RopeTheta = x }, `"RopeTheta":`+want+`,`)
	}
	encoded(t, func(g *Genesis) { g.Inner.LR = 0 }, `"LR":0}`)
}

// specTypes fails unless each value is of the type that the table says.
func specTypes(t *testing.T, doc string, rows [][]string) {
	for _, row := range rows {
		object := map[string]json.RawMessage{}
		_ = json.Unmarshal([]byte(doc), &object)
		outer, key, inside := strings.Cut(row[0], ".")
		if inside {
			raw := object[outer]
			clear(object)
			_ = json.Unmarshal(raw, &object)
		} else {
			key = outer
		}
		patterns := map[string]string{"integer": `^[0-9]+$`, "number": `^[0-9.e-]+$`, "text": `^".*"$`, "bool": `^(true|false)$`, "list": `^\[\]$`}
		if raw := string(object[key]); !regexp.MustCompile(patterns[row[1]]).MatchString(raw) {
			t.Errorf("%s is %s, by the text %s", row[0], raw, row[1])
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
		"an exponent":     strings.Replace(doc, `"NormEps":0.00001`, `"NormEps":1e-5`, 1),
		"a longer number": strings.Replace(doc, `"LR":0.004`, `"LR":0.0040`, 1),
		"a plain <":       strings.Replace(doc, `\u003c`, `<`, 1),
		"an unknown key":  strings.Replace(doc, `{"Rules":1`, `{"Rules":1,"More":1`, 1),
		"other rules":     strings.Replace(doc, `"Rules":1`, `"Rules":2`, 1),
		"text for number": strings.Replace(doc, `"Batch":4`, `"Batch":"4"`, 1),
		"number for text": strings.Replace(doc, `"OwnText":false`, `"OwnText":1`, 1),
		"a key left out":  strings.Replace(doc, `,"Window":200`, ``, 1),
		"another order":   strings.Replace(doc, `"Seed":42,"Batch":4`, `"Batch":4,"Seed":42`, 1),
		"a key twice":     strings.Replace(doc, `"Seed":42`, `"Seed":42,"Seed":42`, 1),
		"bytes behind":    doc + " ",
	} {
		if b == doc {
			t.Fatalf("%s: nothing is changed", name)
		}
		if _, err := Decode([]byte(b)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func fieldOf(g *Genesis, key string) reflect.Value {
	v := reflect.ValueOf(g).Elem()
	for name := range strings.SplitSeq(key, ".") {
		v = v.FieldByName(name)
	}
	return v
}

// bound is a cell of the table of numbers: the value of the key at it, or next to it, and
// the one beyond, in the direction of sign. None for a number without a bound.
func bound(t *testing.T, cell string, v reflect.Value, sign float64) (at, beyond float64, ok bool) {
	if cell == "finite" {
		return 0, 0, false
	}
	words := strings.Fields(cell)
	at, err := strconv.ParseFloat(words[len(words)-1], 64)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case len(words) == 2: // above or below
		return math.Nextafter(at, -sign), at, true
	case v.CanFloat():
		return at, math.Nextafter(at, at+sign), true
	}
	return at, at + sign*max(1, at*0x1p-52), true
}

func specRanges(t *testing.T, s *spectest.Spec) {
	numbers := map[string]bool{"Rules": true, "Seed": true, "Outer.Codec": true} // have no range
	for _, row := range s.Table(t, "genesis") {
		if row[2] == "" {
			continue
		}
		numbers[row[0]] = true
		name := row[0][strings.LastIndex(row[0], ".")+1:]
		of := regexp.MustCompile(`[ .]` + name + ` is [^ ;:]+[;:] (use [-0-9.e+]+ to|use at most|must be|the byte tokenizer|a heartbeat has room)`)
		judge := func(x float64, ok bool) {
			g := fixedGenesis()
			switch v := fieldOf(&g, row[0]); {
			case v.CanFloat():
				v.SetFloat(x)
			case v.CanUint() && x < 0:
				return // such a number has no encoding
			case v.CanUint():
				v.SetUint(uint64(x))
			default:
				v.SetInt(int64(x))
			}
			// Other limits, those that hold for several keys together, may be hit as well.
			if err := g.Validate(); (err != nil && of.MatchString(err.Error()) && !strings.Contains(err.Error(), " x ")) == ok || !ok && err == nil {
				t.Errorf("%s %v: %v", row[0], x, err)
			}
		}
		g := fixedGenesis()
		for i, sign := range []float64{-1, 1} {
			if at, beyond, ok := bound(t, row[i+2], fieldOf(&g, row[0]), sign); ok {
				judge(at, true)
				judge(beyond, false)
			}
		}
	}
	for _, row := range s.Table(t, "genesis") {
		if (row[1] == "integer" || row[1] == "number") && !numbers[row[0]] {
			t.Errorf("%s has no range", row[0])
		}
	}
}

// genesisVerdicts fails unless a change makes a genesis invalid where ok is false.
func genesisVerdicts(t *testing.T, ok bool, changes ...func(g *Genesis)) {
	t.Helper()
	for i, change := range changes {
		g := fixedGenesis()
		change(&g)
		if err := g.Validate(); (err == nil) != ok {
			t.Errorf("change %d: %v", i, err)
		}
	}
}

func specHeads(t *testing.T, _ *spectest.Spec) {
	heads := func(hidden, heads, kv int) func(g *Genesis) {
		return func(g *Genesis) { g.Model.Hidden, g.Model.Heads, g.Model.KVHeads = hidden, heads, kv }
	}
	genesisVerdicts(t, true, heads(128, 4, 4), heads(128, 4, 2), heads(128, 64, 1), heads(12, 6, 3))
	genesisVerdicts(t, false, heads(128, 3, 3), heads(128, 128, 4), heads(12, 4, 4), heads(128, 4, 3), heads(128, 4, 8))
}

func specNames(t *testing.T, _ *spectest.Spec) {
	names := func(text string) []func(g *Genesis) {
		return []func(g *Genesis){func(g *Genesis) { g.Name = text }, func(g *Genesis) { g.Data.Name = text }}
	}
	for _, text := range []string{"", strings.Repeat("x", 200), strings.Repeat("é", 100), "漢 — 😀"} {
		genesisVerdicts(t, true, names(text)...)
	}
	for _, text := range []string{strings.Repeat("x", 201), strings.Repeat("é", 101), "\n", "a\x7f", "\xff", "\u200b", "\u00a0"} {
		genesisVerdicts(t, false, names(text)...)
	}
}

func specWords(t *testing.T, s *spectest.Spec) {
	kind := func(k int64) func(g *Genesis) { return func(g *Genesis) { g.Outer.Codec = codec.Kind(k) } }
	sum := func(text string) func(g *Genesis) { return func(g *Genesis) { g.Data.SHA256 = text } }
	genesisVerdicts(t, true, func(g *Genesis) { g.Inner.Optimizer = "adamw" }, sum(""), sum(strings.Repeat("0aF9", 16)))
	genesisVerdicts(t, false, sum(strings.Repeat("0a", 31)), sum(strings.Repeat("0a", 33)), sum(strings.Repeat("0g", 32)),
		func(g *Genesis) { g.Recipe = "{}" }, func(g *Genesis) { g.Inner.Optimizer = "" }, func(g *Genesis) { g.Inner.Optimizer = "sgd" })
	known := map[int64]bool{}
	for _, row := range s.Table(t, "codecs") {
		known[s.Number(t, "codecs", row[0])] = true
	}
	for k := range int64(256) {
		genesisVerdicts(t, known[k], kind(k))
	}
}

func specStep(t *testing.T, _ *spectest.Spec) {
	step := func(batch, context int) func(g *Genesis) {
		return func(g *Genesis) { g.Batch, g.Model.Context = batch, context }
	}
	genesisVerdicts(t, true, step(4096, 1<<14), step(64, 1<<20))
	genesisVerdicts(t, false, step(4096, 1<<14+1), step(65, 1<<20))
}

// wide is a genesis with that much in each of so many layers and fragments, without momentum.
func wide(vocab, hidden, layers, fragments int, kind codec.Kind) Genesis {
	g := fixedGenesis()
	g.Model.Vocab, g.Model.Hidden, g.Model.Layers, g.Model.Intermediate = vocab, hidden, layers, hidden
	g.Outer.Fragments, g.Outer.Codec, g.Outer.H = fragments, kind, 8
	return g
}

// tipsByText is the length of all tips of a genesis with one head's width for keys, by F-22.
func tipsByText(g Genesis) int {
	m := g.Model
	layer := 7*m.Hidden*m.Hidden + 2*m.Hidden
	tensors := 2 + 9*m.Layers
	return 56*g.Outer.Fragments + 4*(tensors+m.Vocab*m.Hidden+m.Layers*layer+m.Hidden)
}

func specTravels(t *testing.T, s *spectest.Spec) {
	tensors := 2 + 9*4
	genesisVerdicts(t, true, func(g *Genesis) { g.Outer.Fragments = tensors })
	genesisVerdicts(t, false, func(g *Genesis) { g.Outer.Fragments = tensors + 1 })

	const hidden = 1024 // a row of the embedding is one of 1024 values
	for kind, most := range map[codec.Kind]func(vocab int) bool{
		codec.F32: func(vocab int) bool { // by C-12: 4 bytes a value, and 4 modes a segment
			n := (tipsByText(wide(vocab, hidden, 1, 1, codec.F32))-56)/4 - 11
			return int64(6+4*n+4*((n+131071)/131072)) <= s.Number(t, "limits", "MaxPayload")
		},
		codec.Sparse: func(vocab int) bool {
			return int64(tipsByText(wide(vocab, hidden, 1, 1, codec.Sparse))) <= s.Number(t, "limits", "MaxChunks")*s.Number(t, "limits", "ChunkSize")-16<<20
		},
	} {
		fits := sort.Search(1<<20, func(vocab int) bool { return !most(vocab) }) - 1
		if err := wide(fits, hidden, 1, 1, kind).Validate(); err != nil {
			t.Error(err)
		}
		if wide(fits+1, hidden, 1, 1, kind).Validate() == nil {
			t.Errorf("a row more than %d in %v travels", fits, kind)
		}
	}
}

func specAllTips(t *testing.T, _ *spectest.Spec) {
	fits := sort.Search(1024, func(layers int) bool { return tipsByText(wide(256, 4096, layers, 64, codec.Sparse)) > 28<<30 }) - 1
	for layers, ok := range map[int]bool{fits: true, fits + 1: false} {
		if err := wide(256, 4096, layers, 64, codec.Sparse).Validate(); (err == nil) != ok {
			t.Errorf("%d layers: %v", layers, err)
		}
	}
}

// tensorsByText are names and shapes of the table of tensors.
func tensorsByText(t *testing.T, s *spectest.Spec, c llama.Config) (specs []tensor.Spec) {
	sizes := map[string]int{"Vocab": c.Vocab, "Hidden": c.Hidden, "Intermediate": c.Intermediate, "KVHeads x Hidden / Heads": c.KVHeads * c.Hidden / c.Heads}
	add := func(row []string, name string) {
		spec := tensor.Spec{Name: name}
		for word := range strings.SplitSeq(row[2], ", ") {
			spec.Shape = append(spec.Shape, sizes[word])
		}
		specs = append(specs, spec)
	}
	rows := s.Table(t, "tensors")
	for i := 0; i < len(rows); {
		if rows[i][1] == "model" {
			add(rows[i], rows[i][0])
			i++
			continue
		}
		end := i
		for rows[end][1] == "layer" {
			end++
		}
		for layer := range c.Layers {
			for _, row := range rows[i:end] {
				add(row, strings.Replace(row[0], ".L.", fmt.Sprintf(".%d.", layer), 1))
			}
		}
		i = end
	}
	return specs
}

// oddSizes is a model without two equal sizes.
var oddSizes = llama.Config{Vocab: 300, Hidden: 16, Layers: 12, Heads: 4, KVHeads: 2, Intermediate: 24, Context: 8, RopeTheta: 1, NormEps: 1}

func specTensors(t *testing.T, s *spectest.Spec) {
	if got, want := oddSizes.Specs(), tensorsByText(t, s, oddSizes); !reflect.DeepEqual(got, want) {
		t.Errorf("the model has %v, by the text %v", got, want)
	}
}

func specTied(t *testing.T, s *spectest.Spec) {
	c := oddSizes
	c.Tied = true
	all := tensorsByText(t, s, oddSizes)
	if last := all[len(all)-1]; last.Name != "lm_head.weight" || !reflect.DeepEqual(c.Specs(), all[:len(all)-1]) {
		t.Errorf("tied, the model has %v", c.Specs())
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

// streamByText is J-7.3.
func streamByText(seed uint64, name string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	return splitmix(seed, 0) ^ hash.Sum64()
}

// sumByText is S of J-7.4.
func sumByText(stream, i uint64) (sum int) {
	for part := range uint64(12) {
		sum += int(splitmix(stream, 3*i+part/4) >> (16 * (part % 4)) & 0xffff)
	}
	return sum
}

// scaleByText is J-7.5.
func scaleByText(name string, layers int) float64 {
	std := 0.02
	if strings.Contains(name, "o_proj") || strings.Contains(name, "down_proj") {
		std /= math.Sqrt(2 * float64(layers))
	}
	return std / math.Sqrt(1<<32-1)
}

// initial are the initial values of each tensor of a model.
func initial(c llama.Config, seed uint64, do func(v tensor.View, x []float32)) {
	slab := llama.NewParams(c)
	llama.Init(c, slab, seed)
	for _, v := range slab.Views {
		do(v, slab.Of(v))
	}
}

func specOnes(t *testing.T, _ *spectest.Spec) {
	ones := 0
	initial(oddSizes, 7, func(v tensor.View, x []float32) {
		if len(v.Shape) != 1 {
			return
		}
		ones++
		if slices.ContainsFunc(x, func(y float32) bool { return y != 1 }) {
			t.Errorf("%s begins with %v", v.Name, x)
		}
	})
	if ones != 2*oddSizes.Layers+1 {
		t.Errorf("%d tensors of one dimension", ones)
	}
}

// The numbers are from the authors' C code for the seed 1234567.
func specSplitmix(t *testing.T, _ *spectest.Spec) {
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := splitmix(1234567, uint64(i)); got != want {
			t.Errorf("element %d is %d, want %d", i, got, want)
		}
	}
	sums(t, oddSizes, 7)
}

// sums fails unless the initial values are the sums of the text, with any
// rounding.
func sums(t *testing.T, c llama.Config, seed uint64) {
	t.Helper()
	initial(c, seed, func(v tensor.View, x []float32) {
		if len(v.Shape) != 2 {
			return
		}
		stream := streamByText(seed, v.Name)
		for i, y := range x {
			if got := math.Round(float64(y)/scaleByText(v.Name, c.Layers)) + 393210; got != float64(sumByText(stream, uint64(i))) {
				t.Fatalf("%s value %d is of the sum %v, by the text %d", v.Name, i, got, sumByText(stream, uint64(i)))
			}
		}
	})
}

// Two seeds, and two models whose tensors have other places and sizes.
func specStreams(t *testing.T, _ *spectest.Spec) {
	small := oddSizes
	small.Vocab, small.Layers = 256, 2
	sums(t, oddSizes, 0)
	sums(t, small, 0)
	sums(t, small, math.MaxUint64)
}

func specProposal(t *testing.T, _ *spectest.Spec) {
	initial(oddSizes, 42, func(v tensor.View, x []float32) {
		stream := streamByText(42, v.Name)
		for i, y := range x {
			want := float32(float64(sumByText(stream, uint64(i))-393210) * scaleByText(v.Name, oddSizes.Layers))
			if len(v.Shape) == 2 && y != want {
				t.Fatalf("%s value %d is %v, by the text %v", v.Name, i, y, want)
			}
		}
	})
}

func specInit(t *testing.T, s *spectest.Spec) {
	g := fixedGenesis()
	slab := llama.NewParams(g.Model)
	for _, v := range slab.Views {
		stream, scale := streamByText(g.Seed, v.Name), scaleByText(v.Name, g.Model.Layers)
		for i := range slab.Of(v) {
			slab.Of(v)[i] = float32(float64(sumByText(stream, uint64(i))-393210) * scale)
			if len(v.Shape) == 1 {
				slab.Of(v)[i] = 1
			}
		}
	}
	states := s.Hex(t, "genesis states")
	for p, tip := range g.Tips() {
		global := make([]float32, len(tip.Global))
		g.Plan()[p].Gather(slab.Data, global)
		if !reflect.DeepEqual(global, tip.Global) {
			t.Errorf("fragment %d begins with other values", p)
		}
		if want := states[32*p : 32*p+32]; !bytes.Equal(tip.State[:], want) {
			t.Errorf("fragment %d has state %x, the text says %x", p, tip.State, want)
		}
	}
}

// A link whose bytes are put together here is what the program reads and writes.
func specJoinLink(t *testing.T, s *spectest.Spec) {
	run, node, relay := s.Hex(t, "genesis run"), bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	framed := func(parts ...[]byte) string {
		b := slices.Concat(parts...)
		d := wire.Sum(append([]byte("atoll link 1"), b...))
		return "atoll:" + base64.RawURLEncoding.EncodeToString(append(b, d[:3]...))
	}
	ip4 := []byte{192, 0, 2, 1, 0x0f, 0xa1}
	quic := []byte{4, 192, 0, 2, 1, 0x91, 0x02, 0x0f, 0xa1, 0xcd, 0x03}
	first := slices.Concat([]byte{1}, ip4, node)
	text := framed([]byte{4}, run, first, []byte{8, byte(len(quic))}, quic, []byte{4 + 8 + 1}, ip4, relay, []byte{16 + 8 + 4 + 1}, ip4)
	if text != s.Text(t, "join link") {
		t.Errorf("the example is %s", text)
	}
	of := func(n int) string { return framed([]byte{byte(n)}, run, bytes.Repeat(first, n)) }
	for link, peers := range map[string]int{text: 4, framed([]byte{0}, run): 0, of(1): 1, of(32): 32, of(33): -1, text[1:]: -1, text[:len(text)-1]: -1, framed([]byte{1}, run): -1} {
		l, err := joinlink.Parse(link)
		if (err == nil) != (peers >= 0) || err == nil && len(l.Peers) != peers {
			t.Errorf("%s: %v, %v", link, l.Peers, err)
		}
	}
	l, err := joinlink.Parse(text)
	if err != nil || l.String() != text {
		t.Fatalf("%v, %v", l, err)
	}
	direct, ofNode, _ := strings.Cut(l.Peers[0], "/p2p/")
	want := []string{direct + "/p2p/" + ofNode, "/ip4/192.0.2.1/udp/4001/quic-v1/p2p/" + ofNode}
	ofRelay := strings.TrimSuffix(strings.TrimPrefix(l.Peers[2], direct+"/p2p/"), "/p2p-circuit/p2p/"+ofNode)
	want = append(want, direct+"/p2p/"+ofRelay+"/p2p-circuit/p2p/"+ofNode, l.Peers[2])
	if direct != "/ip4/192.0.2.1/tcp/4001" || ofRelay == ofNode || strings.Contains(ofRelay, "/") || !slices.Equal(l.Peers, want) {
		t.Errorf("%q; want %q", l.Peers, want)
	}
}

package genesis

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/tensor/llama"
)

// layoutGenesis is a run of a model that is not built in, and its initial values.
func layoutGenesis() (Genesis, []float32) {
	g := fixedGenesis()
	g.Model = llama.Config{Context: 32}
	g.Layout = Layout{
		{Name: "wte.weight", Shape: []int{300, 400}}, {Name: "h.0.weight", Shape: []int{70, 8}},
		{Name: "h.0.bias", Shape: []int{70}, DType: "BF16"}, {Name: "scale"},
	}
	g.Recipe = `{"family":"test"}`
	g.Outer.Fragments = 3
	values := make([]float32, g.Params())
	for i := range values {
		values[i] = float32(i%97) / 97
	}
	g.First = CutFirst(values).Digests()
	return g, values
}

func specLayout(t *testing.T, _ *spectest.Spec) {
	g, _ := layoutGenesis()
	b := g.Encode()
	want := `"Layout":[{"Name":"wte.weight","Shape":[300,400]},{"Name":"h.0.weight","Shape":[70,8]},{"Name":"h.0.bias","Shape":[70],"DType":"BF16"},{"Name":"scale"}]`
	if !strings.Contains(string(b), want) {
		t.Errorf("%s", b)
	}
	if back, err := Decode(b); err != nil || !reflect.DeepEqual(back, g) {
		t.Errorf("read back %+v, %v", back, err)
	}
}

// spoiled says how a layout run is refused with a change.
func spoiled(t *testing.T, want string, change func(g *Genesis)) {
	t.Helper()
	g, _ := layoutGenesis()
	change(&g)
	if err := g.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func specEntries(t *testing.T, _ *spectest.Spec) {
	entry := func(name string, shape ...int) func(g *Genesis) {
		return func(g *Genesis) { g.Layout = append(Layout{{Name: name, Shape: shape}}, g.Layout...) }
	}
	spoiled(t, "", func(*Genesis) {})
	spoiled(t, "8193 tensors", func(g *Genesis) { g.Layout = make(Layout, 8193) })
	spoiled(t, `two tensors are named "scale"`, entry("scale"))
	spoiled(t, "1 to 256 printable bytes", entry(""))
	spoiled(t, "", entry(strings.Repeat("a", 256)))
	spoiled(t, "1 to 256 printable bytes", entry(strings.Repeat("a", 257)))
	spoiled(t, "1 to 256 printable bytes", entry("a b"))
	spoiled(t, "1 to 256 printable bytes", entry("a\n"))
	spoiled(t, "something else", entry("__metadata__"))
	spoiled(t, "9 dimensions", entry("a", 1, 1, 1, 1, 1, 1, 1, 1, 1))
	spoiled(t, "", entry("a", 1, 1, 1, 1, 1, 1, 1, 1))
	spoiled(t, "dimensions of 1 or more", entry("a", 0))
	spoiled(t, "dimensions of 1 or more", entry("a", 1<<19, 1<<18))
	spoiled(t, "more than 68719476736 values", entry("a", 1<<18, 1<<18))
	for _, dtype := range []string{"F32", "I8", "bfloat16"} {
		spoiled(t, `"scale" has the type "`+dtype+`"; use F64`, func(g *Genesis) { g.Layout[3].DType = dtype })
	}
	for _, dtype := range []string{"F64", "F16"} {
		spoiled(t, "", func(g *Genesis) { g.Layout[3].DType = dtype })
	}
}

// file is an entry of Files of so many bytes.
func file(name string, size int64) File { return File{name, size, strings.Repeat("0a", 32)} }

func specFiles(t *testing.T, _ *spectest.Spec) {
	g, _ := layoutGenesis()
	g.Files = []File{file("additional_chat_templates/rag.jinja", 3), file("tokenizer.json", 64<<20)}
	want := `],"Files":[{"Name":"additional_chat_templates/rag.jinja","Size":3,"Digest":"` + g.Files[0].Digest + `"},{"Name":"tokenizer.json","Size":67108864,"Digest":"` + g.Files[1].Digest + `"}],"Data":`
	if b := g.Encode(); !strings.Contains(string(b), want) {
		t.Errorf("%s", b)
	}
	if back, err := Decode(g.Encode()); err != nil || !reflect.DeepEqual(back, g) {
		t.Errorf("read back %+v, %v", back, err)
	}
	if d := g.Files[0].Sum(); d[0] != 10 {
		t.Errorf("digest %v", d)
	}
}

// withFiles says how a run with these files is refused.
func withFiles(t *testing.T, want string, files ...File) {
	t.Helper()
	spoiled(t, want, func(g *Genesis) { g.Files = files })
}

func specOtherFiles(t *testing.T, _ *spectest.Spec) {
	builtIn := fixedGenesis()
	builtIn.Files = []File{file("tokenizer.json", 1)}
	if err := builtIn.Validate(); err == nil || !strings.Contains(err.Error(), "Files has") {
		t.Error(err)
	}
	var many []File
	for i := range maxFiles + 1 {
		many = append(many, file(fmt.Sprintf("additional_chat_templates/%02d.jinja", i), 1))
	}
	withFiles(t, "", many[1:]...)
	withFiles(t, "there are 65 files", many...)
	withFiles(t, `"vocab.txt" is not in its place`, file("vocab.txt", 1), file("vocab.txt", 1))
	withFiles(t, `"merges.txt" is not in its place`, file("vocab.txt", 1), file("merges.txt", 1))
	for _, size := range []int64{-1, 0, 64<<20 + 1, math.MaxInt64} {
		withFiles(t, "use 1 to 67108864", file("vocab.txt", size))
	}
	withFiles(t, "", file("merges.txt", 64<<20), file("vocab.txt", 64<<20))
	withFiles(t, "134217728 for all", file("merges.txt", 64<<20), file("vocab.json", 1), file("vocab.txt", 64<<20))
	for _, digest := range []string{"", "0a", strings.Repeat("0A", 32)} {
		withFiles(t, "use 64 hex digits", File{"vocab.txt", 1, digest})
	}
}

func specFileNames(t *testing.T, _ *spectest.Spec) {
	for _, name := range []string{
		"", ".", "..", "../tokenizer.json", "/tokenizer.json", `..\\tokenizer.json`, "x/tokenizer.json", "tokenizer.json/", "tokenizer.json\n", "genesis", "key",
		"config.json", "model.safetensors", "README.md", "additional_chat_templates/../x.jinja", "additional_chat_templates/.jinja", "additional_chat_templates/a/b.jinja", "Tokenizer.json",
	} {
		withFiles(t, "no place for a file named", file(name, 1))
	}
}

func specBeside(t *testing.T, _ *spectest.Spec) {
	spoiled(t, "First is empty", func(g *Genesis) { g.First = nil })
	spoiled(t, "Context alone", func(g *Genesis) { g.Model.Hidden = 1 })
	spoiled(t, "Context alone", func(g *Genesis) { g.Model.Tied = true })
	spoiled(t, "Model.Context is 0", func(g *Genesis) { g.Model.Context = 0 })
	spoiled(t, "Model.Context is 1048577", func(g *Genesis) { g.Model.Context = 1<<20 + 1 })
	spoiled(t, "", func(g *Genesis) { g.Recipe = "" })
	spoiled(t, "use JSON", func(g *Genesis) { g.Recipe = "import os" })
	spoiled(t, "use JSON", func(g *Genesis) { g.Recipe = `"` + strings.Repeat("a", maxRecipe) + `"` })
}

// specPieces cuts the tensors as the text says.
func specPieces(t *testing.T, _ *spectest.Spec) {
	g, _ := layoutGenesis()
	all := g.Params()
	most := (all + 4*g.Outer.Fragments - 1) / (4 * g.Outer.Fragments)
	var want, got []int // places
	for _, v := range g.Views() {
		rows := 1
		if len(v.Shape) > 0 {
			rows = v.Shape[0]
		}
		width, k := v.Len/rows, 1
		for k < rows && (rows+k-1)/k*width > most {
			k++
		}
		for i := range k {
			want = append(want, v.Offset+i*rows/k*width)
		}
	}
	for _, f := range g.Plan() {
		for _, piece := range f.Tensors {
			got = append(got, piece.Offset)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("pieces begin at %v, want %v", got, want)
	}
}

// specTies: equal pieces are spread in the order of the slab, whatever they are called.
func specTies(t *testing.T, _ *spectest.Spec) {
	g := fixedGenesis()
	g.Layout, g.Outer.Fragments = Layout{{Name: "z", Shape: []int{4}}, {Name: "a", Shape: []int{4}}}, 2
	g.Layout[0].Shape, g.Layout[1].Shape = []int{1, 4}, []int{1, 4}
	if plan := g.Plan(); plan[0].Tensors[0].Name != "z" || plan[1].Tensors[0].Name != "a" {
		t.Errorf("%+v", plan)
	}
}

func specFirst(t *testing.T, s *spectest.Spec) {
	g, values := layoutGenesis()
	size := int(s.Number(t, "limits", "ChunkSize"))
	var b, list []byte
	for _, x := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	first := CutFirst(values)
	for i := 0; len(b) > 0; i++ {
		d := wire.Sum(b[:min(size, len(b))])
		if first.Chunks[i] != d {
			t.Errorf("chunk %d is %v, want %v", i, first.Chunks[i], d)
		}
		list, b = append(list, d[:]...), b[min(size, len(b)):]
	}
	d := wire.Sum(list)
	if want := []string{hex.EncodeToString(d[:])}; !slices.Equal(g.First, want) {
		t.Errorf("First is %v, want %v", g.First, want)
	}
}

func specFirstKey(t *testing.T, _ *spectest.Spec) {
	g, _ := layoutGenesis()
	if doc := string(g.Encode()); !strings.Contains(doc, `"First":["`+g.First[0]+`"],"Data":`) {
		t.Errorf("%s", doc)
	}
	spoiled(t, "First has 2 digests", func(g *Genesis) { g.First = append(g.First, g.First[0]) })
	spoiled(t, "in lower case", func(g *Genesis) { g.First = []string{strings.ToUpper(g.First[0])} })
	spoiled(t, "First has 9 digests", func(g *Genesis) { g.First = make([]string, 9) })
	spoiled(t, "64 hex digits", func(g *Genesis) { g.First = []string{"ab"} })
}

func specGiven(t *testing.T, _ *spectest.Spec) {
	g, values := layoutGenesis()
	dir, first := t.TempDir(), CutFirst(values)
	slab := g.NewSlab()
	copy(slab.Data, values)
	if err := g.SaveFirst(dir, slab); err != nil {
		t.Fatal(err)
	}
	kept, _, err := g.LoadFirst(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range append(first.Chunks, g.FirstDigests()...) {
		if wire.Sum(kept.Chunk(d)) != d {
			t.Errorf("%v is not given", d)
		}
	}
	for i, d := range g.FirstDigests() {
		if want := len(kept.Chunk(d)); g.ListSize(i) != want {
			t.Errorf("chunk %d of the list has %d bytes, by its size %d", i, want, g.ListSize(i))
		}
	}
	if kept.Chunk(wire.Digest{1}) != nil {
		t.Error("gives what it has not")
	}
}

func specOtherFirst(t *testing.T, _ *spectest.Spec) {
	g, values := layoutGenesis()
	if _, err := g.CheckFirst(values); err != nil {
		t.Error(err)
	}
	values[0]++
	if _, err := g.CheckFirst(values); err == nil {
		t.Error("took other values")
	}
}

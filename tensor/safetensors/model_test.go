package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/tensor"
)

// file is one of tensors of float32, whose values are 1, 2, ... from first on.
func file(t testing.TB, first float32, specs ...tensor.Spec) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, made(first, specs...), nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// of is a tensor of a name and a shape.
func of(name string, shape ...int) tensor.Spec { return tensor.Spec{Name: name, Shape: shape} }

// typed is a file of one tensor of another type and of so many bytes.
func typed(name, dtype string, bytes int, shape string) string {
	return string(raw(fmt.Sprintf(`{%q:{"dtype":%q,"shape":%s,"data_offsets":[0,%d]}}`, name, dtype, shape, bytes), make([]byte, bytes)))
}

// What no error has.
var inner = regexp.MustCompile(`%!|runtime|genesis:|\n`)

const (
	llama  = `{"model_type":"llama","architectures":["LlamaForCausalLM"],"vocab_size":4,"hidden_size":2,"num_hidden_layers":1,"tie_word_embeddings":false}`
	shard1 = "model-00001-of-00002.safetensors"
	shard2 = "model-00002-of-00002.safetensors"
)

var (
	embed = of("model.embed_tokens.weight", 4, 2)
	layer = of("model.layers.0.mlp.up_proj.weight", 3, 2)
	head  = of("lm_head.weight", 4, 2)
)

func with(config, field string) string { return strings.TrimSuffix(config, "}") + "," + field + "}" }

func tied(config string) string {
	return strings.Replace(config, `"tie_word_embeddings":false`, `"tie_word_embeddings":true`, 1)
}

func silent(config string) string {
	return strings.Replace(config, `,"tie_word_embeddings":false`, ``, 1)
}

// What transformers would load is taken, and no more; what is left out is said.
func TestModelsAreChosenAsTransformersDoes(t *testing.T) {
	whole := file(t, 1, embed, layer, head)
	names := []string{embed.Name, layer.Name, head.Name}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
		notes string // the only one has that
	}{
		"one file":            {files: map[string]string{"config.json": llama, "model.safetensors": whole}, want: names},
		"consolidated beside": {files: map[string]string{"config.json": llama, "model.safetensors": whole, "consolidated.safetensors": file(t, 1, of("output.weight", 4, 2)), "consolidated-00001.safetensors": "x"}, want: names},
		"an index beside": {files: map[string]string{"config.json": llama, "model.safetensors": whole, indexFile: `{"weight_map":{"x":"gone.safetensors"}}`,
			shard1: file(t, 1, of("x", 1))}, want: names},
		"shards": {files: map[string]string{"config.json": llama, shard1: file(t, 1, embed), shard2: file(t, 9, layer, head), "other.safetensors": whole,
			indexFile: `{"weight_map":{"model.embed_tokens.weight":"` + shard1 + `","lm_head.weight":"` + shard2 + `"}}`}, want: names},
		"adapters beside a model": {files: map[string]string{"adapter_config.json": `{"peft_type":"LORA"}`, "adapter_model.safetensors": file(t, 1, of("a.lora_A.weight", 2, 2)), "config.json": llama, "model.safetensors": whole},
			want: []string{"a.lora_A.weight"}},
		"tied, and other values": {files: map[string]string{"config.json": tied(llama), "model.safetensors": whole}, want: names[:2], notes: "lm_head.weight is not trained: the config ties it to model.embed_tokens.weight; transformers 5"},
		"tied, and the same values": {files: map[string]string{"config.json": tied(llama), shard1: file(t, 1, embed, layer), shard2: file(t, 1, head),
			indexFile: `{"weight_map":{"model.embed_tokens.weight":"` + shard1 + `","lm_head.weight":"` + shard2 + `"}}`}, want: names[:2], notes: "lm_head.weight is not trained: the config ties"},
		"tied, the head alone": {files: map[string]string{"config.json": tied(llama), "model.safetensors": file(t, 1, layer, head)}, want: names[1:]},
		"no config at all":     {files: map[string]string{"model.safetensors": whole}, want: names},
		"a model of one's own": {files: map[string]string{"config.json": `{"vocab_size":99,"hidden_size":9,"n_layer":9}`, "model.safetensors": whole}, want: names},
		"places":               {files: map[string]string{"config.json": `{}`, "model.safetensors": typed("position_ids", "I64", 16, "[1,2]")}, notes: "position_ids is not trained: it is in I64"},
		"a mask":               {files: map[string]string{"config.json": `{}`, "model.safetensors": typed("h.0.attn.bias", "U8", 4, "[1,1,2,2]")}, notes: "h.0.attn.bias is not trained: a constant of the model"},
		"parts": {files: map[string]string{"config.json": `{"model_type":"gemma3","text_config":` + tied(llama) + `}`,
			"model.safetensors": file(t, 1, of("language_model.model.embed_tokens.weight", 4, 2), of("language_model.model.layers.0.mlp.up_proj.weight", 3, 2), of("vision_tower.layers.7.weight", 9))},
			want: names[:2], notes: "1 tensor is of other parts than that for text"},
		"parts, newer names": {files: map[string]string{"config.json": `{"model_type":"gemma3","text_config":` + llama + `}`,
			"model.safetensors": file(t, 1, of("model.language_model.embed_tokens.weight", 4, 2), of("model.language_model.layers.0.mlp.up_proj.weight", 3, 2), of("model.vision_tower.weight", 9), head)},
			want: names, notes: "1 tensor is of other parts than that for text"},
		"a tie of the whole": {files: map[string]string{"config.json": `{"model_type":"x","tie_word_embeddings":true,"text_config":` + silent(llama) + `}`,
			"model.safetensors": file(t, 1, of("language_model.model.embed_tokens.weight", 4, 2), of("language_model.lm_head.weight", 4, 2))},
			want: names[:1], notes: "lm_head.weight is not trained: the config ties it"},
		"parts, a text_model": {files: map[string]string{"config.json": `{"model_type":"idefics3","text_config":` + llama + `}`,
			"model.safetensors": file(t, 1, of("model.text_model.embed_tokens.weight", 4, 2), of("model.text_model.layers.0.mlp.up_proj.weight", 3, 2), of("model.vision_model.x", 9), of("model.connector.x", 9), head)},
			want: names, notes: "2 tensors are of other parts than that for text"},
		"parts, a text_model alone": {files: map[string]string{"config.json": `{"text_config":` + llama + `}`, "model.safetensors": file(t, 1, of("text_model.embed_tokens.weight", 4, 2))}, want: []string{"embed_tokens.weight"}},
		"narrow embeddings":         {files: map[string]string{"config.json": `{"model_type":"electra","vocab_size":4,"hidden_size":8,"embedding_size":2}`, "model.safetensors": file(t, 1, of("e.word_embeddings.weight", 4, 2))}, want: []string{"e.word_embeddings.weight"}},
		"narrow input":              {files: map[string]string{"config.json": `{"model_type":"rembert","vocab_size":4,"hidden_size":8,"input_embedding_size":2}`, "model.safetensors": file(t, 1, of("e.word_embeddings.weight", 4, 2))}, want: []string{"e.word_embeddings.weight"}},
		"other embeddings":          {files: map[string]string{"config.json": `{"model_type":"mamba","vocab_size":4}`, "model.safetensors": file(t, 1, of("shared.weight", 4, 2))}, want: []string{"shared.weight"}},
		"a count":                   {files: map[string]string{"config.json": `{"model_type":"llama"}`, shard1: file(t, 1, embed), shard2: typed("steps", "I32", 4, "[1]"), indexFile: `{"weight_map":{"steps":"` + shard2 + `","model.embed_tokens.weight":"` + shard1 + `"}}`}, want: names[:1], notes: "steps is not trained: it is in I32"},
		"a count of one's own":      {files: map[string]string{"config.json": `{}`, "model.safetensors": typed("seen", "U8", 4, "[4]")}, notes: "seen is not trained: it is in U8"},
		"not quantized":             {files: map[string]string{"config.json": with(llama, `"quantization_config":{}`), "model.safetensors": whole}, want: names},
		"not quantized, null":       {files: map[string]string{"config.json": with(llama, `"quantization_config":null`), "model.safetensors": whole}, want: names},
		"a mark before":             {files: map[string]string{"config.json": "\ufeff" + llama, "model.safetensors": whole}, want: names},
		"the only file":             {files: map[string]string{"first.safetensors": whole, "README.md": "x"}, want: names},
		"experts each": {files: map[string]string{"config.json": strings.Replace(llama, `"llama"`, `"mixtral"`, 1), "model.safetensors": file(t, 1, embed, of("model.layers.0.block_sparse_moe.experts.0.w1.weight", 2, 2), head)},
			want: []string{embed.Name, "model.layers.0.block_sparse_moe.experts.0.w1.weight", head.Name}, notes: "learners need transformers 4: each expert"},
		"experts in one": {files: map[string]string{"config.json": strings.Replace(llama, `"llama"`, `"mixtral"`, 1), "model.safetensors": file(t, 1, embed, of("model.layers.0.mlp.experts.gate_up_proj", 2, 2, 2), head)},
			want: []string{embed.Name, "model.layers.0.mlp.experts.gate_up_proj", head.Name}, notes: "learners need transformers 5: all experts"},
	} {
		m, err := OpenModel(folder(t, nil, c.files))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, x := range m.Tensors {
			got = append(got, x.Name)
		}
		if !slices.Equal(got, c.want) || m.Config != nil && !json.Valid(m.Config) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if len(m.Notes) > 1 || (len(m.Notes) == 0) != (c.notes == "") || c.notes != "" && !strings.HasPrefix(m.Notes[0], c.notes) {
			t.Errorf("%s: %q, want %q", name, m.Notes, c.notes)
		}
		m.Close()
	}
}

// What no learner could train is refused by file, tensor, value and remedy.
func TestModelsThatNobodyCouldTrainAreRefused(t *testing.T) {
	whole := file(t, 1, embed, layer, head)
	index := func(text string) map[string]string {
		return map[string]string{"config.json": llama, indexFile: text, shard1: file(t, 1, embed, layer), shard2: file(t, 1, head)}
	}
	places := func(embed, head string) string {
		return `{"weight_map":{"model.embed_tokens.weight":"` + embed + `","lm_head.weight":"` + head + `"}}`
	}
	twice := index(places(shard1, shard2))
	twice[shard2] = file(t, 1, head, embed)
	config := func(text string) map[string]string {
		return map[string]string{"config.json": text, "model.safetensors": whole}
	}
	weights := func(text string) map[string]string {
		return map[string]string{"config.json": llama, "model.safetensors": text}
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  string // parts with | between
	}{
		"missing shard":      {index(places(shard1, "model-00003-of-00003.safetensors")), indexFile + " names model-00003-of-00003.safetensors, which is not there|fetch"},
		"another file":       {index(places(shard2, shard1)), `puts tensor "lm_head.weight" into |` + shard1 + `, and it is in |` + shard2 + "|fetch them anew"},
		"not in the file":    {index(`{"weight_map":{"lm_head.bias":"` + shard1 + `"}}`), `puts tensor "lm_head.bias" into |and it is in none`},
		"in two files":       {twice, `tensor "model.embed_tokens.weight" is in |` + shard1 + " and in |" + shard2},
		"index outside":      {index(places("../x", shard1)), indexFile + ` names "../x", which is outside`},
		"empty index":        {index(`{}`), "weight_map names no tensors"},
		"index of a list":    {index(`{"weight_map":[]}`), indexFile + ": |weight_map"},
		"cut index":          {index(`{"weight_map":{`), indexFile + ": unexpected end"},
		"a pickle":           {map[string]string{"config.json": llama, "optimizer.pt": "x", "pytorch_model.bin": "x"}, "has no model.safetensors and no index, but pytorch_model.bin|save_pretrained"},
		"consolidated alone": {map[string]string{"config.json": llama, "consolidated.safetensors": whole}, "has no model.safetensors and no index, but consolidated.safetensors"},
		"nothing":            {map[string]string{"config.json": llama}, "has no model.safetensors"},
		"a cache":            {map[string]string{"models--a--b/snapshots/c/config.json": llama}, "is a cache of downloads: name the folder of one version in it, such as|models--a--b/snapshots/c"},
		"adapters' pickle":   {map[string]string{"adapter_config.json": "{}", "adapter_model.bin": "x", "model.safetensors": whole}, "has no adapter_model.safetensors and no index, but adapter_model.bin"},
		"a pointer":          {weights("version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 9\n"), "model.safetensors: the header says|a pointer of git-lfs"},
		"cut file":           {weights(whole[:len(whole)-1]), `model.safetensors: tensor "lm_head.weight" is at |cut off or damaged`},
		"longer file":        {weights(whole + "x"), "model.safetensors: the header has |bytes of values|damaged"},
		"an empty file":      {weights(""), "model.safetensors: 0 bytes are no file of tensors: fetch it anew"},
		"no index":           {map[string]string{"config.json": llama, shard1: whole, shard2: whole, "consolidated.safetensors": whole}, "has " + shard1 + ", and no " + indexFile + "|fetch that too"},
		"two others":         {map[string]string{"a.safetensors": whole, "b.safetensors": whole}, "has no model.safetensors and no index, but a.safetensors"},
		"null":               {config(" null\n"), "config.json: it is null|fetch it anew"},
		"no embeddings":      {weights(file(t, 1, layer, head)), "config.json is of a model that reads tokens, and no tensor to train has its embeddings|fetch its files anew"},
		"unknown parts":      {map[string]string{"config.json": `{"model_type":"qwen2_5_vl","text_config":` + llama + `}`, "model.safetensors": whole}, `config.json has a text_config|"model.embed_tokens.weight": save that part alone`},
		"a tied part":        {map[string]string{"config.json": `{"text_config":` + tied(llama) + `}`, "model.safetensors": file(t, 1, head, layer)}, `"model.layers.0.mlp.up_proj.weight": save that part alone`},
		"layers":             {config(with(llama, `"num_hidden_layers":3`)), "config.json says 3 layers, and the files have 1: "},
		"width alone":        {config(strings.Replace(llama, `"vocab_size":4,"hidden_size":2`, `"hidden_size":3`, 1)), "config.json says a width of 3: "},
		"tokens alone":       {config(strings.Replace(llama, `"vocab_size":4,"hidden_size":2`, `"vocab_size":3`, 1)), "config.json says 3 tokens: "},
		"neither":            {map[string]string{"config.json": `{"model_type":"x"}`, "model.safetensors": file(t, 1, of(embed.Name, 8))}, "config.json says tokens and a width: "},
		"no JSON":            {config(`{`), "config.json: unexpected end"},
		"a list":             {config(`[]`), "config.json: |array"},
		"rows of text":       {config(with(llama, `"max_position_embeddings":"many"`)), `config.json: |max_position_embeddings`},
		"long config":        {config(with(llama, `"x":"`+strings.Repeat("x", maxText)+`"`)), "config.json: it has |at most 16777216"},
		"vocabulary":         {config(strings.Replace(llama, `"vocab_size":4`, `"vocab_size":5`, 1)), `model.safetensors: tensor "model.embed_tokens.weight" has the shape [4 2]|config.json says 5 tokens and a width of 2: `},
		"width":              {config(strings.Replace(llama, `"hidden_size":2`, `"hidden_size":3`, 1)), `has the shape [4 2]|says 4 tokens and a width of 3: `},
		"a flat embedding":   {weights(file(t, 1, of(embed.Name, 8), layer, head)), "has the shape [8]"},
		"another head":       {weights(file(t, 1, embed, layer, of("lm_head.weight", 2, 4))), `"lm_head.weight" has the shape [2 4]`},
		"nobody knows":       {config(strings.Replace(silent(llama), `"llama"`, `"nonesuch"`, 1)), "does not say whether lm_head.weight is tied|true or false"},
		"quantized":          {config(with(llama, `"quantization_config":{"bits":4}`)), "config.json: it has a quantization_config|F32"},
		"quantized part":     {config(`{"text_config":{"model_type":"llama","quantization_config":{"bits":8}}}`), "it has a quantization_config"},
		"eight bits":         {weights(typed("model.layers.0.q.weight", "I8", 4, "[2,2]")), `model.safetensors: tensor "model.layers.0.q.weight" is in I8: quantized|F32`},
		"a float of eight":   {weights(typed("model.layers.0.q.weight", "F8_E4M3", 4, "[2,2]")), "is in F8_E4M3: quantized"},
		"packed":             {weights(typed("model.layers.0.q.qweight", "I32", 4, "[1]")), "is in I32: quantized"},
	} {
		_, err := OpenModel(folder(t, nil, c.files))
		for _, part := range strings.Split(c.want, "|") {
			if err == nil || !strings.Contains(err.Error(), part) || inner.MatchString(strings.ReplaceAll(err.Error(), os.TempDir(), "")) {
				t.Errorf("%s: error %v, want %q", name, err, part)
			}
		}
	}
}

// What is at a path and is no file is said as it is.
func TestWhatIsNoFileIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		made func(path string) error
		want string
	}{
		"model.safetensors":   {func(path string) error { return os.Symlink("gone", path) }, "model.safetensors is a link to a file that is not there: fetch"},
		"config.json":         {func(path string) error { return os.Symlink("gone", path) }, "config.json: it is a link to a file that is not there: fetch"},
		shard2:                {func(path string) error { return os.Symlink("gone", path) }, shard2 + " is a link to a file that is not there: fetch"},
		"weights":             {func(path string) error { return os.Mkdir(path, 0o755) }, "is a folder, and a file of tensors belongs there: fetch"},
		"adapter_config.json": {func(path string) error { return os.Mkdir(path, 0o755) }, "adapter_config.json: is a directory"},
	} {
		files := map[string]string{"config.json": llama, "model.safetensors": file(t, 1, embed, layer, head)}
		delete(files, name)
		if name == shard2 || name == "weights" {
			delete(files, "model.safetensors")
			files[indexFile] = `{"weight_map":{"x":"` + name + `"}}`
		}
		dir := folder(t, nil, files)
		if err := c.made(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		_, err := OpenModel(dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), dir) != 1 {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// Rows are as long as a model has places, and T5's are relative.
func TestRowsAreThoseOfPlaces(t *testing.T) {
	for config, want := range map[string]int{
		`{"model_type":"gpt2","n_positions":8}`: 8, `{"model_type":"mt5","n_positions":8}`: 0, `{"max_position_embeddings":9}`: 9, `{"max_position_embeddings":-1}`: 0,
	} {
		m := &Model{Config: []byte(config)}
		if err := m.parseConfig(); err != nil || m.Rows != want {
			t.Errorf("%s: %v, rows of %d, want %d", config, err, m.Rows, want)
		}
	}
}

// Values that are no numbers are counted by tensor, in every type.
func TestValuesThatAreNoNumbersAreRefused(t *testing.T) {
	s := made(1, layer, embed)
	nan := float32(math.NaN())
	copy(s.Of(s.Views[1]), []float32{nan, 1, float32(math.Inf(-1)), nan})
	m, err := OpenModel(folder(t, map[string]*tensor.Slab{"model.safetensors": s}, map[string]string{}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	dst := make([]float32, 8)
	if err := m.Read(m.Tensors[0], dst[:6]); err != nil {
		t.Error(err)
	}
	if err := m.Read(m.Tensors[1], dst); err == nil || !strings.Contains(err.Error(), `model.safetensors: 3 of the 8 values of tensor "model.embed_tokens.weight" are infinite or no numbers`) {
		t.Error(err)
	}
	large := string(raw(`{"x":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}`, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x7e})) // 1e303: no float32
	wide, err := OpenModel(folder(t, nil, map[string]string{"model.safetensors": large}))
	if err != nil {
		t.Fatal(err)
	}
	defer wide.Close()
	if err := wide.Read(wide.Tensors[0], dst[:1]); err == nil || !strings.Contains(err.Error(), "1 of the 1 values") {
		t.Error(err)
	} else if !strings.Contains(err.Error(), "too large for float32") {
		t.Error(err)
	}
}

// However tensors are cut into files, in whatever folder, they are the same model.
func TestShardsAreOneModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var specs []tensor.Spec
		for i := range rapid.IntRange(1, 6).Draw(r, "tensors") {
			specs = append(specs, of(fmt.Sprintf("model.layers.%d.x.weight", i), rapid.SliceOfN(rapid.IntRange(1, 3), 0, 3).Draw(r, "shape")...))
		}
		s := made(1, specs...)
		dir, err := os.MkdirTemp(t.TempDir(), rapid.SampledFrom([]string{"m", "m[1]", "m*?", "m x"}).Draw(r, "name"))
		if err != nil {
			r.Fatal(err)
		}
		cut, index := map[string][]int{}, map[string]string{}
		for i, spec := range specs {
			name := fmt.Sprintf("model-%d.safetensors", rapid.IntRange(1, 3).Draw(r, "shard"))
			cut[name], index[spec.Name] = append(cut[name], i), name
		}
		var list []string
		for name, which := range cut {
			var own []tensor.Spec
			for _, i := range which {
				own = append(own, specs[i])
			}
			part := tensor.NewSlab(own)
			for at, i := range which {
				copy(part.Of(part.Views[at]), s.Of(s.Views[i]))
			}
			var b bytes.Buffer
			if err := Write(&b, part, nil); err != nil {
				r.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600); err != nil {
				r.Fatal(err)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(index)) {
			list = append(list, fmt.Sprintf("%q:%q", name, index[name]))
		}
		if err := os.WriteFile(filepath.Join(dir, indexFile), []byte(`{"weight_map":{`+strings.Join(list, ",")+`}}`), 0o600); err != nil {
			r.Fatal(err)
		}
		m, err := OpenModel(dir)
		if err != nil {
			r.Fatal(err)
		}
		defer m.Close()
		if len(m.Tensors) != len(specs) {
			r.Fatalf("%d tensors of %d", len(m.Tensors), len(specs))
		}
		for _, x := range m.Tensors {
			i := slices.IndexFunc(specs, func(spec tensor.Spec) bool { return spec.Name == x.Name })
			got := make([]float32, x.Len())
			if err := m.Read(x, got); err != nil || !slices.Equal(got, s.Of(s.Views[i])) {
				r.Errorf("%s: %v, %v", x.Name, got, err)
			}
		}
	})
}

// Whatever config, index and weights say, it ends with tensors that can be read or an error.
func FuzzModel(f *testing.F) {
	f.Add([]byte(llama), []byte(`{"weight_map":{"lm_head.weight":"b.safetensors"}}`), []byte(file(f, 1, embed, layer, head)))
	f.Add([]byte(tied(llama)), []byte(`{"weight_map":{"x":"../x"}}`), []byte(file(f, 1, embed, layer, head)))
	f.Add([]byte(`{"text_config":{"model_type":"x","num_hidden_layers":1e9}}`), []byte(`{}`), []byte(typed("language_model.h.3.x", "BF16", 2, "[1]")))
	f.Fuzz(func(t *testing.T, config, index, weights []byte) {
		m := &Model{Config: config}
		file, err := Open(bytes.NewReader(weights), int64(len(weights)))
		if err == nil {
			m.Tensors = file.Tensors
			err = m.parseConfig()
		}
		if err == nil {
			err = m.choose()
		}
		for i := 0; err == nil && i < len(m.Tensors); i++ {
			x := m.Tensors[i]
			if x.Len() > len(weights) {
				t.Fatalf("%+v in %d bytes", x, len(weights))
			}
			err = m.Read(x, make([]float32, x.Len()))
		}
		if places, err := parseIndex(index); err == nil {
			_ = m.follow("", places) // or it names what is not there
		}
	})
}

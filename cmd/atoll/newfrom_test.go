package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"atoll/node/genesis"
	"atoll/tensor"
	"atoll/tensor/safetensors"
)

// bytesModel is the config of a model whose tokens are bytes.
const bytesModel = `{"model_type":"llama","vocab_size":256,"hidden_size":2,"max_position_embeddings":64,"tie_word_embeddings":true}`

// modelIn writes a small model to a folder.
func modelIn(t *testing.T, dir, config string, tokenizer bool) {
	t.Helper()
	s := tensor.NewSlab([]tensor.Spec{{Name: "model.embed_tokens.weight", Shape: []int{256, 2}}, {Name: "model.norm.weight", Shape: []int{2}}})
	var b bytes.Buffer
	if err := safetensors.Write(&b, s, nil); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"config.json": config, "model.safetensors": b.String()}
	if strings.Contains(config, "peft_type") {
		files = map[string]string{"adapter_config.json": config, "adapter_model.safetensors": b.String()}
	}
	if tokenizer {
		files["tokenizer.json"] = "{}"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// shellWords are the arguments of a command line, as a shell passes them to the program that it begins with.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	program, _, _ := strings.Cut(line, " ")
	out, err := exec.Command("sh", "-c", program+`() { printf '%s\n' "$@"; }; `+line).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// joinOf is what atoll join makes of a command that was printed.
func joinOf(t *testing.T, line string) *JoinCmd {
	t.Helper()
	var parsed commandLine
	parser, err := kong.New(&parsed, kong.Name("atoll"), kong.PostBuild(environment))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(shellWords(t, line)); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if err := parsed.Join.nodeFlags.check(); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return &parsed.Join
}

// What new prints to be typed is a command that join and the learner take as it stands, whatever names have in them.
func TestPrintedCommandRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	modelIn(t, "it's a [model]", bytesModel, true)
	modelIn(t, "bytes", bytesModel, false)
	modelIn(t, "bare", strings.Replace(bytesModel, `"model_type":"llama",`, "", 1), false)
	modelIn(t, "adapters", `{"peft_type":"LORA","base_model_name_or_path":"bytes"}`, false)
	modelIn(t, "of words", `{"peft_type":"LORA","base_model_name_or_path":"it's a [model]"}`, false)
	modelIn(t, "others", `{"peft_type":"IA3"}`, false)
	text := "my text.txt"
	if err := os.WriteFile(text, bytes.Repeat([]byte("light "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	texts := filepath.Join(t.TempDir(), "texts")
	if err := errors.Join(os.Mkdir(texts, 0o755), os.WriteFile(filepath.Join(texts, "a.jsonl"), bytes.Repeat([]byte("{\"text\":\"light\"}\n"), 1000), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, data string
		learner    []string // program and arguments
	}{
		{"it's a [model]", text, []string{"hf"}},
		{"it's a [model]", "", []string{"hf"}},
		{"it's a [model]", texts, []string{"hf"}}, // lines of JSON
		{"bytes", text, []string{"hf"}},
		{"bytes", texts, []string{"hf"}}, // the node passes on the text
		{"bare", texts, []string{"python3", "train.py"}},
		{"bytes", "", []string{"hf"}},
		{"bare", text, []string{"python3", "train.py"}},
		{"adapters", text, []string{"hf", "--base", "bytes", "--tokenizer", "DIR"}},
		{"of words", text, []string{"hf", "--base", "it's a [model]"}}, // by the tokenizer of its model
		{"others", text, []string{"python3", "train.py"}},
	} {
		args := []string{"new", "--json", filepath.Join(t.TempDir(), "a run"), "--from", c.from, "--tokens", "1e4", "--profile", "local"}
		if c.data != "" {
			args = append(args, "--data", c.data)
		}
		code, stdout, stderr := typed(t, args...)
		var made created
		if err := json.Unmarshal([]byte(stdout), &made); err != nil || code != exitDone {
			t.Fatalf("%q: exit code %d, %v: %s", args, code, err, stderr)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(made.Genesis), genesis.BesideFolder, "tokenizer.json")); (err == nil) != (c.from == "it's a [model]" || c.from == "of words") {
			t.Errorf("%s: its tokenizer in the run's folder: %v", c.from, err)
		}
		if beside := strings.Join(made.Files, " "); (beside == "tokenizer.json") != (c.from == "it's a [model]" || c.from == "of words") {
			t.Errorf("%s: files %q", c.from, beside)
		}
		join := joinOf(t, made.Next)
		learner := shellWords(t, join.Learner)
		learner = append([]string{strings.Fields(join.Learner)[0]}, slices.DeleteFunc(learner, func(word string) bool { return word == "" })...)
		data := c.data
		if data == "" && learner[0] == "hf" {
			data = "TEXT"
		}
		if !slices.Equal(learner, c.learner) || join.Init != c.from || join.Data != data || join.Profile != "local" {
			t.Errorf("%s: learner %q, want %q; --init %q, --data %q", made.Next, learner, c.learner, join.Init, join.Data)
		}
		if learner[0] == "hf" {
			hfTakes(t, learner[1:])
		}
	}
}

// hfTakes asks the learner's own parser, where there is Python.
func hfTakes(t *testing.T, args []string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		return
	}
	cmd := exec.Command(python, append([]string{"-c", "import sys; from atoll import hf; hf._options(sys.argv[1:])"}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+learners)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("hf %q: %v: %s", args, err, out)
	}
}

// learners is the folder of the Python package.
var learners = func() string {
	path, err := filepath.Abs("../../optimizer/trainer/external/python")
	if err != nil {
		panic(err)
	}
	return path
}()

// A model is gone on with from its own folder, which stays as it is.
func TestNewFromHere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mine")
	modelIn(t, dir, bytesModel, false)
	t.Chdir(dir)
	if code, stdout, stderr := typed(t, "new", "--from", ".", "--tokens", "1e4"); code != exitDone || !strings.Contains(stdout, "mine/genesis") || !strings.Contains(stdout, "atoll join mine --init . --learner") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	var names []string
	entries, err := os.ReadDir(".")
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{"config.json", "mine", "model.safetensors"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v: %q, want %q", err, names, want)
	}
}

// What no learner could do is refused where the run is made, and nothing is written.
func TestNewFromRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	modelIn(t, "model", bytesModel, true)
	modelIn(t, "quantized", `{"model_type":"llama","quantization_config":{"bits":4}}`, true)
	modelIn(t, "mistyped", `{"model_type":"llama","vocab_size":"x"}`, true)
	modelIn(t, "narrow", `{"model_type":"llama","hidden_size":2}`, false)
	modelIn(t, "float", `{"model_type":"llama","max_position_embeddings":1000.0}`, false)
	modelIn(t, "wide", `{"model_type":"llama","hidden_size":3}`, true)
	for line, want := range map[string]string{
		"--from model --context 65":          "--context is 65, and the model of model takes rows of at most 64 tokens: use fewer, or raise max_position_embeddings",
		"--from model --data nosuch":         "nosuch: no such file or directory",
		"--from model/config.json":           "model/config.json is no folder",
		"--from float":                       "max_position_embeddings is of the kind number 1000.0, and a whole number belongs there",
		"--from quantized":                   "quantized/config.json: it has a quantization_config|F32",
		"--from mistyped":                    "mistyped/config.json: vocab_size is of the kind string, and a whole number belongs there",
		"--from wide":                        `wide/model.safetensors: tensor "model.embed_tokens.weight" has the shape [256 2]|fetch them anew`,
		"--from absent":                      "there is no absent/config.json: a model in the form of Hugging Face has one",
		"--from model --context 0":           "--context is 0; use more, or leave it out",
		"--from model --lr=-0":               "--lr is 0; use more",
		"--from model --step 0s":             "--step is 0; use more",
		"--from model --union-window-size 0": "--union-window-size is 0; use more",
	} {
		code, _, stderr := typed(t, append(strings.Fields("new --tokens 1e4"), strings.Fields(line)...)...)
		for _, part := range strings.Split(want, "|") {
			if code == exitDone || !strings.Contains(stderr, part) {
				t.Errorf("%s: exit code %d, %s; want %q", line, code, stderr, part)
			}
		}
	}
	if left, err := filepath.Glob("*-run"); err != nil || len(left) > 0 {
		t.Errorf("%v: it leaves %q", err, left)
	}
}

// zeroMeans are flags whose 0 says something that leaving them out does not, or says the same, each with what.
var zeroMeans = map[string]string{
	"seed": "a seed", "steps": "compares nothing", "last": "all", "temperature": "the likeliest", "top-k": "all", "top-p": "all", "uses": "any number, of new",
	"eval-bytes": "none", "held-out": "nothing is held out", "seconds": "the least", "pace": "none, of join", "shrink": "no trials", "delta-time": "none", "keep": "refused by its type", "skip-broken": "none",
}

// A number that is typed as 0 is refused, or 0 means something: it is never taken for a flag that was left out.
func TestTypedZeroIsNotNone(t *testing.T) {
	t.Chdir(t.TempDir())
	modelIn(t, "model", bytesModel, false)
	checked := 0
	eachCommand(t, func(n *kong.Node) {
		for _, f := range n.Flags {
			kind := f.Target.Type()
			if kind.Kind().String() == "ptr" {
				kind = kind.Elem()
			}
			number := strings.HasPrefix(kind.Kind().String(), "int") || strings.HasPrefix(kind.Kind().String(), "uint") || strings.HasPrefix(kind.Kind().String(), "float")
			if _, means := zeroMeans[f.Name]; !number || means || len(n.Children) > 0 {
				continue
			}
			zero := "0"
			if kind.Name() == "Duration" {
				zero = "0s"
			}
			line := append(strings.Fields(strings.TrimPrefix(n.FullPath(), "atoll ")), "--"+f.Name+"="+zero)
			for _, p := range n.Positional {
				if p.Required {
					line = append(line, "x")
				}
			}
			for _, other := range n.Flags {
				if other.Required && other != f {
					line = append(line, "--"+other.Name+"=x")
				}
			}
			checked++
			if code, _, stderr := typed(t, line...); code != exitUsage || !strings.Contains(stderr, "--"+f.Name) || !strings.Contains(stderr, "0") {
				t.Errorf("%q: exit code %d, %s", line, code, stderr)
			}
		}
	})
	if checked < 20 {
		t.Errorf("%d flags were tried: this test looks in the wrong place", checked)
	}
	if _, _, stderr := typed(t, "join", "nowhere", "--keep", "all"); !strings.Contains(stderr, "nowhere") || strings.Contains(stderr, "--keep") {
		t.Errorf("--keep all: %s", stderr)
	}
	t.Setenv("ATOLL_NEW_LR", "0")
	if code, _, stderr := typed(t, "new"); code != exitUsage || !strings.Contains(stderr, "--lr is 0") {
		t.Errorf("from the environment: exit code %d, %s", code, stderr)
	}
}

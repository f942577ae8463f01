package tokenizers

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"atoll/testnet/lab/trials"
)

func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"--seeds 0": `--seeds is "0"`, "--seeds 1,x": `--seeds is "1,x"`, "--nodes 0": "use 1 or more", "tiny": `"tiny" is no flag`, "--text 0": "--text 0",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one that says %q", args, err, want)
		}
	}
	if err := Main(t.Context(), []string{"--texts", "poems", "--work", t.TempDir()}, nil, nil); err == nil || !strings.Contains(err.Error(), `no text "poems"`) {
		t.Errorf("error %v", err)
	}
}

// TestBudgets: a run on a BPE reads the same text in fewer tokens, or as many as the time of the bytes is enough for.
func TestBudgets(t *testing.T) {
	p, err := parse([]string{"--text", "1000"})
	if err != nil {
		t.Fatal(err)
	}
	list := p.cells("tiny", 2)[:3]
	if list[0].Tokens != inBytes || list[1].Tokens != inBPE || list[2].Equal != equalTime || list[2].Seed != 2 {
		t.Fatalf("cells %+v", list)
	}
	bpe := builtCorpus{bytesPerToken: 4}
	if _, err := budgetOf(list[2], bpe, nil); err == nil {
		t.Error("a budget by a time that nobody knows")
	}
	all := []trial{{cell: list[0], ProcessorS: 90}, {cell: list[1], ProcessorS: 30}}
	for i, want := range []uint64{1000, 250, 750} {
		c := builtCorpus{bytesPerToken: 1}
		if i > 0 {
			c = bpe
		}
		if got, err := budgetOf(list[i], c, all); err != nil || got != want {
			t.Errorf("cell %d has %d tokens, %v; want %d", i, got, err, want)
		}
	}
}

// TestTable: what was measured before is shown, the seeds of a cell in one line, and it is not measured again.
func TestTable(t *testing.T) {
	p, err := parse([]string{"--models", "tiny", "--texts", "prose", "--seeds", "1,2"})
	if err != nil {
		t.Fatal(err)
	}
	p.trials = filepath.Join(t.TempDir(), "trials.jsonl")
	w := world{typed: p}
	w.atoll = "absent"
	for seed := 1; seed <= 2; seed++ {
		for i, c := range p.cells("tiny", seed) {
			if err := trials.Append(p.trials, trial{cell: c, BPB: float64(i+1) + float64(seed)/10, Text: 1e6, ProcessorS: 60}); err != nil {
				t.Fatal(err)
			}
			if err := w.play(t.Context(), c); err != nil {
				t.Errorf("it measures again: %v", err)
			}
		}
	}
	var out bytes.Buffer
	if err := Main(t.Context(), []string{"--table", "--trials", p.trials}, &out, nil); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 4 || !strings.Contains(got, "2.100 2.200    2.150") {
		t.Errorf("the table is\n%s", got)
	}
}

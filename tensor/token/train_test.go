package token

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func trained(t *testing.T, size int, texts ...string) *Vocabulary {
	t.Helper()
	trainer, err := NewTrainer(size)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		trainer.Add([]byte(text))
	}
	return trainer.Train()
}

func TestTrain(t *testing.T) {
	v := trained(t, MinSize+3, "low low low lower lower newest newest newest newest")
	// "we" is there 6 times, "lo" 5 times; of several that are there 4 times, "e" and "we"
	// have the lowest ids.
	want := [][2]string{{"w", "e"}, {"l", "o"}, {"e", "we"}}
	if !slices.Equal(v.Merges, want) {
		t.Errorf("merges %q, want %q", v.Merges, want)
	}
	tokenizer, err := Parse(v.JSON())
	if err != nil {
		t.Fatal(err)
	}
	if end, ok := tokenizer.End(); !ok || end != 0 || tokenizer.Size() != MinSize+3 {
		t.Errorf("end token %d, %v; %d tokens", end, ok, tokenizer.Size())
	}
	if got := tokenizer.NewEncoder().Append(nil, []byte("we")); len(got) != 1 {
		t.Errorf(`"we" has the tokens %v, want one`, got)
	}
}

func TestTrainStopsWithoutPairs(t *testing.T) {
	if v := trained(t, 1000, "abab ab"); len(v.Tokens) >= 1000 || len(v.Merges) == 0 {
		t.Errorf("%d tokens and %d merges of a text of 7 bytes", len(v.Tokens), len(v.Merges))
	}
	if _, err := Parse(trained(t, 300).JSON()); err != nil {
		t.Errorf("a tokenizer without merges: %v", err)
	}
}

func TestTrainerBounds(t *testing.T) {
	if _, err := NewTrainer(MinSize - 1); err == nil {
		t.Error("a vocabulary without room for all bytes was taken")
	}
	trainer, _ := NewTrainer(300)
	trainer.limit = 10
	trainer.Add([]byte(strings.Repeat("often ", 50) + "a b c d e f g h i j k l m n o p"))
	if len(trainer.counts) > trainer.limit || trainer.counts[" often"] == 0 {
		t.Errorf("%d words are left: %v", len(trainer.counts), trainer.counts)
	}
}

// TestTrainIsDeterministic: the order of texts does not change which pairs are frequent, and
// maps do not change the order of merges.
func TestTrainIsDeterministic(t *testing.T) {
	texts := someTexts(300)
	first := trained(t, 600, texts...).JSON()
	slices.Reverse(texts)
	if !bytes.Equal(first, trained(t, 600, texts...).JSON()) {
		t.Error("the same texts gave two tokenizers")
	}
}

func someTexts(n int) []string {
	random := newTexts(3)
	list := make([]string, n)
	for i := range list {
		list[i] = random.next()
	}
	return list
}

// TestTrainAsTheJudge: the judge trains the same vocabulary, and transformers loads it.
func TestTrainAsTheJudge(t *testing.T) {
	if exec.Command("python3", "-c", "import tokenizers").Run() != nil {
		t.Skip("there is no python3 that has tokenizers")
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	// Words that are too long are left out of training, here alone.
	text := regexp.MustCompile(`(?m)^.*(\s{60}|\S{60}).*$`).ReplaceAll(readme, nil)
	file, from := filepath.Join(t.TempDir(), "tokenizer.json"), filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(from, text, 0o644); err != nil {
		t.Fatal(err)
	}
	const size = 1500
	v := trained(t, size, string(text))
	if err := os.WriteFile(file, v.JSON(), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("python3", "testdata/judge/judge.py", "retrain", file, from, "1500").Output()
	if err != nil {
		t.Fatal(err)
	}
	var judged struct {
		Merges [][2]string
		Vocab  map[string]int32
	}
	if err := json.Unmarshal(out, &judged); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v.Merges, judged.Merges) || len(judged.Vocab) != len(v.Tokens) {
		t.Errorf("%d merges and %d tokens, the judge has %d and %d, or others", len(v.Merges), len(v.Tokens), len(judged.Merges), len(judged.Vocab))
	}
	for id, token := range v.Tokens {
		if judged.Vocab[token] != int32(id) {
			t.Errorf("token %q has id %d, the judge has %d", token, id, judged.Vocab[token])
		}
	}
}

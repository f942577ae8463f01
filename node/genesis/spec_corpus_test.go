package genesis

import (
	"reflect"
	"strings"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/llama"
)

func corpusGenesis() Genesis {
	g := fixedGenesis()
	g.Data = Data{Name: "web"}
	g.Corpus = &Corpus{Manifest: strings.Repeat("0a", 32), Tokenizer: strings.Repeat("00", 32)}
	return g
}

func specCorpus(t *testing.T, _ *spectest.Spec) {
	g := corpusGenesis()
	b := string(g.Encode())
	want := `"Data":{"Name":"web","SHA256":""},"Corpus":{"Manifest":"` + g.Corpus.Manifest + `","Tokenizer":"` + g.Corpus.Tokenizer + `"}}`
	if !strings.HasSuffix(b, want) {
		t.Errorf("%s ends otherwise than in %s", b, want)
	}
	if back, err := Decode([]byte(b)); err != nil || !reflect.DeepEqual(back, g) {
		t.Errorf("read back %+v, %v", back, err)
	}
	for change, ok := range map[string]bool{
		`"Manifest":"0a>"Manifest":"0b`: true, `"Manifest":"0a>"Manifest":"0A`: false, `"Manifest":"0a>"Manifest":"`: false, `"Manifest":"0a>"Manifest":"0a0a`: false, `"Manifest":"0a>"Manifest":"xx`: false,
		`"Tokenizer":"00>"Tokenizer":"0f`: true, `"Tokenizer":"00>"Tokenizer":"`: false,
	} {
		from, to, _ := strings.Cut(change, ">")
		if _, err := Decode([]byte(strings.Replace(b, from, to, 1))); (err == nil) != ok {
			t.Errorf("%s: error %v", to, err)
		}
	}
}

// specOneText: a run says one thing of its text.
func specOneText(t *testing.T, _ *spectest.Spec) {
	for want, change := range map[string]func(*Genesis){
		"":                      func(*Genesis) {},
		"both say what the tex": func(g *Genesis) { g.Data.SHA256 = strings.Repeat("0a", 32) },
	} {
		g := corpusGenesis()
		change(&g)
		if err := g.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func specOwnCorpus(t *testing.T, _ *spectest.Spec) {
	g, _, err := Spec{Model: llama.Tiny, Text: Text{Own: true, Train: 1000, Corpus: &Shards{
		Manifest: strings.Repeat("0a", 32), Tokenizer: strings.Repeat("0b", 32), Vocab: 300,
	}}}.Make()
	if err != nil || !g.Outer.OwnText || g.Corpus == nil || g.Data.Name != OwnText {
		t.Errorf("%+v, %v", g, err)
	}
}

// A window moves on by a shard when a learner of the usual batch, of 512 tokens, has read as many tokens as one has.
func TestWindow(t *testing.T) {
	for tokens, steps := range map[int64]int64{1: 1, 511: 1, 1024: 2, 5120: 10} {
		m := &shards.Manifest{Shards: []shards.Shard{{Tokens: tokens / 2}, {Tokens: tokens + tokens - tokens/2}}}
		if w := corpusGenesis().Window(m); w.Shards != windowShards || w.Steps != steps {
			t.Errorf("%d tokens a shard: %+v, want %d steps", tokens, w, steps)
		}
	}
}

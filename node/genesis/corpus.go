package genesis

import (
	"errors"
	"fmt"

	"atoll/optimizer/trainer/corpus/shards"
)

// Corpus is a corpus in shards, which all learners of the run read. Its manifest names them.
type Corpus struct {
	Manifest  string // digest, in hex
	Tokenizer string // digest of tokenizer.json, in hex; zeros for bytes
}

// windowShards is how many shards a learner reads from at a step: enough that a batch mixes what was shuffled apart, few enough to
// hold and to fetch.
const windowShards = 4

// Window is what a learner reads of a corpus at a step. It moves on by a shard when a learner of the usual batch has read as
// many tokens as a shard has on average.
func (g Genesis) Window(m *shards.Manifest) shards.Window {
	tokens, _ := shards.Tokens(m.Shards)
	return shards.Window{Shards: windowShards, Steps: max(1, tokens/int64(len(m.Shards))/int64(g.StepTokens()))}
}

// setCorpus has learners train on a corpus: its name, the digests of manifest and tokenizer in hex, and the tokenizer's ids.
func (g *Genesis) setCorpus(name, manifest, tokenizer string, vocab int) {
	g.Data, g.Model.Vocab = Data{Name: name}, vocab
	g.Corpus = &Corpus{Manifest: manifest, Tokenizer: tokenizer}
}

// bytesVocab is the vocabulary of texts without a corpus: their tokens are bytes.
const bytesVocab = 256

// ErrVocab says that a model's vocabulary does not suit its text.
var ErrVocab = errors.New("another vocabulary than the text's")

// fitVocab refuses a model whose vocabulary a tokenizer of so many tokens does not fill, or
// overflows. Rows that no token reaches cost memory and bytes of every delta, and learn nothing. A model
// with the vocabulary of bytes, or one that has a name, is taken for any corpus: setCorpus gives it
// the vocabulary of the tokenizer.
func (g Genesis) fitVocab(tokens int) error {
	switch v := g.Model.Vocab; {
	case v == tokens:
		return nil
	case tokens == bytesVocab:
		return fmt.Errorf(`%w: that of --model has %d tokens, and a text has %d, its bytes: make a corpus with a tokenizer of that many by atoll data tokenizer and atoll data build, or use a model with "vocab":%d`, ErrVocab, v, tokens, tokens)
	case v == bytesVocab || hasName(g.Model):
		return nil
	default:
		return fmt.Errorf(`%w: that of --model has %d tokens, and the tokenizer of the corpus %d: write "vocab":%d`, ErrVocab, v, tokens, tokens)
	}
}

// fitBytes is fitVocab for texts whose tokens are bytes.
func (g Genesis) fitBytes() error { return g.fitVocab(bytesVocab) }

// validateCorpus makes sure that the run says one thing of its text.
func (g Genesis) validateCorpus() error {
	c := g.Corpus
	switch {
	case c == nil:
		return nil
	case g.Data.SHA256 != "":
		return fmt.Errorf("genesis: Data.SHA256 and Corpus both say what the text is; use one")
	}
	for _, f := range []struct{ name, value string }{{"Manifest", c.Manifest}, {"Tokenizer", c.Tokenizer}} {
		if !isDigest(f.value) {
			return fmt.Errorf("genesis: Corpus.%s is %.80q; use %d hex digits in lower case", f.name, f.value, sha256Hex)
		}
	}
	return nil
}

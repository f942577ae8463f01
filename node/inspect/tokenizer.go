package inspect

import (
	"fmt"

	"atoll/node/genesis"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

// Tokenizer returns the tokenizer of a run from a node's folder, and its tokenizer.json, nil
// where tokens are bytes.
func Tokenizer(dir string, g genesis.Genesis) (token.Tokenizer, []byte, error) {
	if g.Corpus == nil {
		return token.Byte, nil, nil
	}
	var digest shards.Digest
	if err := digest.UnmarshalText([]byte(g.Corpus.Tokenizer)); err != nil {
		return nil, nil, fmt.Errorf("the run's tokenizer: %w", err)
	}
	t, file, err := shards.ReadTokenizer(dir, digest)
	if err != nil {
		err = fmt.Errorf("the tokenizer of the run: %w: copy tokenizer.json from the run's corpus to that folder", err)
	}
	return t, file, err
}

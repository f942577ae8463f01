package inspect

import (
	"encoding/json"
	"fmt"

	"atoll/node/genesis"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor"
	"atoll/tensor/token"
)

// Export writes parameters of a run after so many folded tokens to a new folder, with the files that the folder of a node has beside
// its weights: see genesis.Export. dtype is the type of all weights, "" for the one that they came in.
func Export(home string, g genesis.Genesis, out string, s *tensor.Slab, folded uint64, dtype string) error {
	f := genesis.Form{DType: dtype}
	t, file, err := Tokenizer(home, g)
	if err == nil {
		f.Files, err = g.ReadFiles(home)
	}
	if err != nil {
		return err
	}
	if file != nil {
		f.Files["tokenizer.json"] = bare(file)
	}
	if id, ends := t.End(); ends {
		f.End, f.EndID = string(t.Bytes(id)), id
	}
	return g.Export(out, s, folded, f)
}

// bare is a tokenizer.json that puts nothing before a text, such as <s>: a corpus has no such tokens, so the model has seen none.
func bare(file []byte) []byte {
	var fields map[string]json.RawMessage
	var after struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(file, &fields) != nil || json.Unmarshal(fields["post_processor"], &after) != nil || after.Type == "" || after.Type == "ByteLevel" {
		return file
	}
	fields["post_processor"] = json.RawMessage("null")
	file, _ = json.Marshal(fields) // it was read before
	return file
}

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

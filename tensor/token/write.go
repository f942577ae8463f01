package token

import (
	"bytes"
	"encoding/json"
)

// JSON returns tokenizer.json: what Parse reads, and what transformers loads.
func (v *Vocabulary) JSON() []byte {
	type object = map[string]any
	level := func(regex bool) object {
		return object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex}
	}
	merges := v.Merges
	if merges == nil {
		merges = [][2]string{}
	}
	return marshal(struct {
		Version       string       `json:"version"`
		Truncation    any          `json:"truncation"`
		Padding       any          `json:"padding"`
		AddedTokens   []any        `json:"added_tokens"`
		Normalizer    any          `json:"normalizer"`
		PreTokenizer  object       `json:"pre_tokenizer"`
		PostProcessor any          `json:"post_processor"`
		Decoder       object       `json:"decoder"`
		Model         orderedModel `json:"model"`
	}{
		Version:     "1.0",
		AddedTokens: []any{addedToken{Content: EndName, Special: true}},
		PreTokenizer: object{"type": "Sequence", "pretokenizers": []any{
			object{"type": "Split", "pattern": object{"Regex": llama3Pattern}, "behavior": "Isolated", "invert": false}, level(false)}},
		Decoder: level(true),
		Model:   orderedModel{Type: "BPE", Vocab: v.vocab(), Merges: merges},
	})
}

// orderedModel is the model of a file, with all the fields that its readers want.
type orderedModel struct {
	Type                    string          `json:"type"`
	Dropout                 any             `json:"dropout"`
	UnkToken                any             `json:"unk_token"`
	ContinuingSubwordPrefix any             `json:"continuing_subword_prefix"`
	EndOfWordSuffix         any             `json:"end_of_word_suffix"`
	FuseUnk                 bool            `json:"fuse_unk"`
	ByteFallback            bool            `json:"byte_fallback"`
	IgnoreMerges            bool            `json:"ignore_merges"`
	Vocab                   json.RawMessage `json:"vocab"`
	Merges                  [][2]string     `json:"merges"`
}

// vocab is an object in the order of ids, which people find their way in.
func (v *Vocabulary) vocab() []byte {
	b := []byte{'{'}
	for id, token := range v.Tokens {
		if id > 0 {
			b = append(b, ',')
		}
		b = append(b, bytes.TrimSpace(marshal(token))...)
		b = append(b, ':')
		b = append(b, marshal(id)...)
	}
	return append(b, '}')
}

// Config returns tokenizer_config.json, which transformers wants beside the other.
func (v *Vocabulary) Config() []byte {
	return marshal(map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": EndName})
}

// marshal writes JSON without escapes for HTML: the tokens of tokenizer.json are read by
// people too.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("token: " + err.Error()) // no value of this package fails to encode
	}
	return b.Bytes()
}

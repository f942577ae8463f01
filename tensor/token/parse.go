package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

const (
	// MaxFile bounds tokenizer.json: the largest known, of 260,000 tokens, has 33 MB.
	MaxFile = 64 << 20
	// maxSize bounds ids: a model has a row of parameters for each.
	maxSize = 1 << 20
)

// Parse reads a tokenizer.json. Its errors wrap what is wrong with the file.
func Parse(data []byte) (*BPE, error) {
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	return t, nil
}

func parse(data []byte) (*BPE, error) {
	if len(data) > MaxFile {
		return nil, fmt.Errorf("it has %d bytes, of at most %d", len(data), MaxFile)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if err := f.Model.check(); err != nil {
		return nil, err
	}
	family, err := familyOf(&f)
	if err != nil {
		return nil, err
	}
	if f.Decoder == nil || f.Decoder.Type != "ByteLevel" {
		return nil, fmt.Errorf("its decoder is not ByteLevel: %w", errFamily)
	}
	t := &BPE{family: family, end: -1, raw: newMatcher(), normalized: newMatcher()}
	for _, fill := range []func(*file) error{t.addVocab, t.addBytes, t.addMerges, t.addAdded} {
		if err := fill(&f); err != nil {
			return nil, err
		}
	}
	t.findEnd()
	return t, nil
}

// addVocab takes in the tokens of the model.
func (t *BPE) addVocab(f *file) error {
	if len(f.Model.Vocab) == 0 {
		return errors.New("its model has no vocab")
	}
	size := int32(0)
	for content, id := range f.Model.Vocab {
		if id < 0 || id >= maxSize {
			return fmt.Errorf("token %q has id %d: ids are 0 to %d", content, id, maxSize-1)
		}
		size = max(size, id+1)
	}
	t.texts = make([][]byte, size)
	if f.Model.IgnoreMerges {
		t.words = map[string]int32{}
	}
	for content, id := range f.Model.Vocab {
		if t.texts[id] != nil {
			return fmt.Errorf("tokens %q and %q have one id, %d", content, t.texts[id], id)
		}
		text, ok := fromAlphabet(content)
		t.texts[id] = text
		if ok && t.words != nil { // no word has the others
			t.words[string(text)] = id
		}
	}
	return nil
}

// addBytes finds the tokens that words begin from.
func (t *BPE) addBytes(f *file) error {
	for b := range t.bytes {
		id, ok := f.Model.Vocab[string(alphabet[b])]
		if !ok {
			return fmt.Errorf("its vocab has no token for the byte %#02x: %w", b, errFamily)
		}
		t.bytes[b] = id
	}
	return nil
}

// addMerges takes in the merges, the first of which go first.
func (t *BPE) addMerges(f *file) error {
	merges := make(map[pair]merge, len(f.Model.Merges))
	for rank, m := range f.Model.Merges {
		var ids [3]int32
		for i, content := range []string{m[0], m[1], m[0] + m[1]} {
			id, ok := f.Model.Vocab[content]
			if !ok {
				return fmt.Errorf("merge %d, of %q and %q: %q is not in vocab", rank, m[0], m[1], content)
			}
			ids[i] = id
		}
		p := pair{ids[0], ids[1]}
		if _, ok := merges[p]; ok {
			return fmt.Errorf("merge %d, of %q and %q, is there twice", rank, m[0], m[1])
		}
		merges[p] = merge{int32(rank), ids[2]}
	}
	t.merges = newPairTable(merges)
	return nil
}

// addAdded takes in the added tokens. One that the vocabulary lacks has the id that comes
// next: the judge gives it that one, whatever the file says.
func (t *BPE) addAdded(f *file) error {
	next := int32(len(f.Model.Vocab))
	for _, a := range f.AddedTokens {
		id, known := f.Model.Vocab[a.Content]
		switch {
		case a.Content == "" || !utf8.ValidString(a.Content):
			return fmt.Errorf("added token %d has no text", a.ID)
		case a.SingleWord || a.LStrip || a.RStrip:
			return fmt.Errorf("added token %q has single_word, lstrip or rstrip: %w", a.Content, errFamily)
		case !known:
			id = next
			next++
		}
		if a.ID != id || id >= maxSize {
			return fmt.Errorf("added token %q has id %d, and %d follows from the ones before it", a.Content, a.ID, id)
		}
		if err := t.addOne(a, id, known); err != nil {
			return err
		}
	}
	return nil
}

func (t *BPE) addOne(a addedToken, id int32, known bool) error {
	m, content := &t.raw, a.Content
	if a.Normalized {
		m = &t.normalized
		if t.family.nfc {
			content = string(composing().append(nil, []byte(content)))
		}
	}
	if !known {
		if int(id) >= len(t.texts) {
			t.texts = append(t.texts, make([][]byte, int(id)+1-len(t.texts))...)
		}
		if t.texts[id] != nil {
			return fmt.Errorf("added token %q has id %d, which is the one of %q", a.Content, id, t.texts[id])
		}
		if decoded, ok := fromAlphabet(content); ok && string(decoded) != content {
			return fmt.Errorf("added token %q has letters that the decoder takes for bytes: name it in ASCII", a.Content)
		}
		t.texts[id] = []byte(content)
	}
	m.add(content, id)
	return nil
}

func (t *BPE) findEnd() {
	for _, name := range endNames {
		if id := slices.IndexFunc(t.texts, func(text []byte) bool { return string(text) == name }); id >= 0 {
			t.end = int32(id)
			return
		}
	}
}

// alphabet has the rune that stands for each byte in tokenizer.json: those that can be
// seen stand for themselves, the others are 256 and up.
var alphabet = func() (runes [256]rune) {
	next := rune(256)
	for b := range runes {
		switch {
		case b >= '!' && b <= '~', b >= 0xa1 && b <= 0xac, b >= 0xae:
			runes[b] = rune(b)
		default:
			runes[b] = next
			next++
		}
	}
	return runes
}()

// bytesOfAlphabet is the way back.
var bytesOfAlphabet = func() map[rune]byte {
	m := map[rune]byte{}
	for b, r := range alphabet {
		m[r] = byte(b)
	}
	return m
}()

// fromAlphabet returns the bytes that a token stands for. A token with other runes stands
// for its own text, and ok is false.
func fromAlphabet(token string) (text []byte, ok bool) {
	text = make([]byte, 0, len(token))
	for _, r := range token {
		b, known := bytesOfAlphabet[r]
		if !known {
			return []byte(token), false
		}
		text = append(text, b)
	}
	return text, true
}

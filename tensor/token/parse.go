package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	if f.Model.ByteFallback != family.marked {
		return nil, fmt.Errorf("its model has byte_fallback %v, unlike %s: %w", f.Model.ByteFallback, family.name, errFamily)
	}
	decoder, want := f.Decoder.describe(), "ByteLevel"
	if family.marked {
		decoder, want = strings.TrimSuffix(decoder, stripPrefix), unmark
	}
	if decoder != want {
		return nil, fmt.Errorf("its decoder is %.*s, and that of %s is %s: %w", maxPattern, decoder, family.name, want, errFamily)
	}
	t := &BPE{family: family, end: -1, raw: newMatcher(), normalized: newMatcher()}
	for _, fill := range []func(*file) error{t.addVocab, t.addBytes, t.addMerges, t.addAdded} {
		if err := fill(&f); err != nil {
			return nil, err
		}
	}
	t.findEnd(f.AddedTokens)
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
		text, word := t.text(content)
		t.texts[id] = text
		if t.words != nil {
			t.words[word] = id
		}
	}
	return nil
}

// addBytes finds the tokens that words begin from.
func (t *BPE) addBytes(f *file) error {
	name := func(b byte) string { return string(alphabet[b]) }
	if t.family.marked {
		name = byteToken
	}
	for b := range t.bytes {
		id, ok := f.Model.Vocab[name(byte(b))]
		if !ok {
			return fmt.Errorf("its vocab has no token for the byte %#02x: %w", b, errFamily)
		}
		t.bytes[b] = id
	}
	if t.family.marked {
		return t.addRunes(f)
	}
	return nil
}

// addRunes finds the tokens of runes, which words of a family with marks begin from, and which of them merges join.
func (t *BPE) addRunes(f *file) error {
	runes, joined := map[pair]merge{}, map[pair]merge{}
	for content, id := range f.Model.Vocab {
		if _, word := t.text(content); utf8.RuneCountInString(word) == 1 {
			r, _ := utf8.DecodeRuneInString(word)
			runes[pair{r, 0}] = merge{id: id}
			if r < utf8.RuneSelf {
				t.bytes[r] = id
			}
		}
	}
	if _, ok := runes[pair{' ', 0}]; !ok {
		return fmt.Errorf("its vocab has no token for %s: %w", mark, errFamily)
	}
	for rank, m := range f.Model.Merges {
		for _, side := range m {
			if _, is := byteOf(side); is {
				return fmt.Errorf("merge %d, of %q and %q, is of the token of a byte: %w", rank, m[0], m[1], errFamily)
			}
		}
		last, _ := utf8.DecodeLastRuneInString(strings.ReplaceAll(m[0], mark, " "))
		first, _ := utf8.DecodeRuneInString(strings.ReplaceAll(m[1], mark, " "))
		joined[pair{last, first}] = merge{}
	}
	t.runes, t.joined = newPairTable(runes), newPairTable(joined)
	return nil
}

// text is what a token decodes to, and the word that becomes the token as it stands, or "".
func (t *BPE) text(content string) (text []byte, word string) {
	if !t.family.marked {
		text, ok := fromAlphabet(content)
		if !ok {
			return text, ""
		}
		return text, string(text)
	}
	text = appendSpaced([]byte{}, []byte(content))
	if word = string(text); strings.Contains(content, " ") {
		word = "" // all spaces are marked
	}
	if b, is := byteOf(content); is {
		text = []byte{b}
	}
	return text, word
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
	next, e := int32(len(f.Model.Vocab)), t.NewEncoder().(*encoder)
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
		if err := t.addOne(e, a, id, known); err != nil {
			return err
		}
	}
	return nil
}

func (t *BPE) addOne(e *encoder, a addedToken, id int32, known bool) error {
	m, content := &t.raw, []byte(a.Content)
	if a.Normalized {
		m, content = &t.normalized, e.normal(content)
	}
	if !known {
		if int(id) >= len(t.texts) {
			t.texts = append(t.texts, make([][]byte, int(id)+1-len(t.texts))...)
		}
		if t.texts[id] != nil {
			return fmt.Errorf("added token %q has id %d, which is the one of %q", a.Content, id, t.texts[id])
		}
		if decoded, ok := fromAlphabet(string(content)); !t.family.marked && ok && !bytes.Equal(decoded, content) {
			return fmt.Errorf("added token %q has letters that the decoder takes for bytes: name it in ASCII", a.Content)
		}
		if t.texts[id] = slices.Clone(content); t.family.marked {
			t.texts[id], _ = t.text(a.Content)
		}
	}
	m.add(string(content), id)
	return nil
}

// findEnd looks among the added tokens alone: text may have such a word.
func (t *BPE) findEnd(added []addedToken) {
	for _, name := range endNames {
		if i := slices.IndexFunc(added, func(a addedToken) bool { return a.Content == name }); i >= 0 {
			t.end = int32(added[i].ID)
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

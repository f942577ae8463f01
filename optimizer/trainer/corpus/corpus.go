package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"atoll/optimizer/trainer/corpus/documents"
)

// Names that Open understands besides paths.
const (
	// Prose is the text that comes with the program, Newton's Opticks.
	Prose = ""
	// GoCode is the Go code under GOROOT/src, without tests and generated files.
	GoCode = "goroot"
)

// MaxBytes bounds a corpus: all of it is held in memory beside the model.
const MaxBytes = 1 << 30

// Corpus is an immutable stream of bytes in two parts: the first nine tenths
// to train on and the last tenth, which is held out to measure with.
type Corpus struct {
	name string
	data []byte
	cut  int // data[:cut] is trained on, data[cut:] is held out
	sum  [sha256.Size]byte
	note string
}

// Open reads the corpus that path names: a file, a folder, Prose or GoCode. Files are read as package documents
// reads them, of JSON lines and Parquet the field "text"; those of a folder in the order of their paths. A
// file or folder called "goroot" is opened as "./goroot".
func Open(path string) (*Corpus, error) {
	switch path {
	case Prose:
		return openProse()
	case GoCode:
		return openGoCode()
	}
	tally := documents.Tally{}
	data, err := readPath(path, tally, func(string) bool { return true }, func([]byte) bool { return true })
	if err != nil {
		return nil, fmt.Errorf("open corpus: %w", err)
	}
	c := New(filepath.Base(path), data)
	c.note = tally.String()
	return c, nil
}

// New makes a corpus of data, which it keeps and the caller must not change.
func New(name string, data []byte) *Corpus {
	return &Corpus{name: name, data: data, cut: len(data) * 9 / 10, sum: sha256.Sum256(data)}
}

// Unseen is the corpus as a text that nobody trained on: all of it is held out.
func (c *Corpus) Unseen() *Corpus {
	unseen := *c
	unseen.cut = 0
	return &unseen
}

// Name returns a short name for people: the base name of what was opened.
func (c *Corpus) Name() string { return c.name }

// Note says in one line what reading did to files and what it left out, "" if there is nothing to say.
func (c *Corpus) Note() string { return c.note }

// Train returns the part to train on. The caller must not change it.
func (c *Corpus) Train() []byte { return c.data[:c.cut:c.cut] }

// HeldOut returns the part that is never trained on. The caller must not change it.
func (c *Corpus) HeldOut() []byte { return c.data[c.cut:] }

// SHA256 returns the hash of the whole corpus, both parts, in hex.
func (c *Corpus) SHA256() string { return hex.EncodeToString(c.sum[:]) }

// Fits tells whether both parts hold at least one window of context tokens and
// the token that follows it; the error says how much more is needed.
func (c *Corpus) Fits(context int) error {
	if context < 1 {
		return fmt.Errorf("corpus %s: context is %d: it must be at least 1 token", c.name, context)
	}
	need := context + 1
	held := len(c.data) - c.cut
	if c.cut >= need && held >= need {
		return nil
	}
	return fmt.Errorf("corpus %s: %d bytes leave %d to train on and %d held out, and a context of %d tokens needs %d of each: "+
		"pass at least %d bytes of text or a model with a shorter context", c.name, len(c.data), c.cut, held, context, need, 10*need)
}

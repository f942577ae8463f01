package shards

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/blake3"
)

const (
	// Format is the version of manifests.
	Format = 1
	// MaxShard bounds a shard: little enough to wait for on a slow link, enough that a
	// corpus of terabytes has a manifest that fits a message.
	MaxShard = 8 << 20
	// MaxManifest bounds a manifest: 200,000 shards, 1.6 TB of tokens.
	MaxManifest = 32 << 20
	// maxText bounds names and licences, which people read.
	maxText = 1000
	// maxMirrors bounds where a node looks for a shard before it gives up.
	maxMirrors = 16
)

// Digest is the BLAKE3 hash of a file.
type Digest [32]byte

// Sum is the digest of bytes.
func Sum(b []byte) Digest { return blake3.Sum256(b) }

// String is the digest in hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(d)) {
		return fmt.Errorf("digest %.80q: want %d hex digits", text, hex.EncodedLen(len(d)))
	}
	_, err := hex.Decode(d[:], text)
	return err
}

// Manifest names the parts of a corpus. Its JSON is canonical: a manifest has one form.
type Manifest struct {
	Format    int       `json:"atoll_corpus"`
	Name      string    `json:"name"`
	Licence   string    `json:"licence"`
	Tokenizer Tokenizer `json:"tokenizer"`
	Width     int       `json:"width"` // bytes of a token: 2 or 4
	Seed      uint64    `json:"seed"`  // of the shuffle
	Mirrors   []string  `json:"mirrors"`

	Mixture []Component `json:"mixture,omitempty"` // of corpora that are mixed

	HeldOut []Shard `json:"held_out"`
	Shards  []Shard `json:"shards"`
}

// Tokenizer says what the tokens are.
type Tokenizer struct {
	Name   string `json:"name"`   // its family, or "byte"
	Size   int    `json:"size"`   // ids are below it
	End    int32  `json:"end"`    // follows each document; -1: none
	Digest Digest `json:"digest"` // of tokenizer.json; zeros for bytes
}

// ByteTokenizer is the Tokenizer of tokens that are bytes.
func ByteTokenizer() Tokenizer { return Tokenizer{Name: "byte", Size: 256, End: -1} }

// Shard is a file of tokens.
type Shard struct {
	Digest Digest `json:"digest"`
	Tokens int64  `json:"tokens"`
	Bytes  int64  `json:"bytes"` // of text that the tokens stand for, end tokens aside
}

// Size is the bytes of a shard's file.
func (m *Manifest) Size(s Shard) int64 { return s.Tokens * int64(m.Width) }

// Bytes is the bytes of the files of all shards.
func (m *Manifest) Bytes() (bytes int64) {
	for _, list := range [][]Shard{m.HeldOut, m.Shards} {
		tokens, _ := Tokens(list)
		bytes += tokens * int64(m.Width)
	}
	return bytes
}

// WidthFor returns the bytes of a token of a vocabulary.
func WidthFor(size int) int {
	if size <= 1<<16 {
		return 2
	}
	return 4
}

// Encode returns the canonical JSON.
func (m *Manifest) Encode() []byte {
	written := *m
	if m.Mirrors == nil {
		written.Mirrors = []string{}
	}
	written.Mixture = slices.Clone(m.Mixture)
	for i, c := range m.Mixture {
		if c.Mirrors == nil {
			written.Mixture[i].Mirrors = []string{}
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(written); err != nil {
		panic("shards: " + err.Error()) // a struct of numbers and text
	}
	return b.Bytes()
}

// Digest names the corpus.
func (m *Manifest) Digest() Digest { return Sum(m.Encode()) }

// Parse reads a manifest. It takes the canonical form alone.
func Parse(b []byte) (*Manifest, error) {
	m, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

func parse(b []byte) (*Manifest, error) {
	if len(b) > MaxManifest {
		return nil, fmt.Errorf("it has %d bytes, of at most %d", len(b), MaxManifest)
	}
	m := &Manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if !bytes.Equal(b, m.Encode()) {
		return nil, errors.New("it is not in its canonical form: somebody changed it, build the corpus anew")
	}
	return m, nil
}

// Validate refuses what no builder makes.
func (m *Manifest) Validate() error {
	if m.Format != Format {
		return fmt.Errorf("it has format %d, this program reads %d: use the version of atoll that built it", m.Format, Format)
	}
	for _, text := range []string{m.Name, m.Licence} {
		if err := checkText(text); err != nil {
			return err
		}
	}
	if err := m.Tokenizer.validate(); err != nil {
		return err
	}
	if want := WidthFor(m.Tokenizer.Size); m.Width != want {
		return fmt.Errorf("tokens have %d bytes, %d ids need %d", m.Width, m.Tokenizer.Size, want)
	}
	if err := checkMirrors(m.Mirrors); err != nil {
		return err
	}
	if len(m.HeldOut) == 0 || len(m.Shards) == 0 {
		return errors.New("it has no shards to train on, or none that are held out")
	}
	seen := map[Digest]bool{}
	for _, list := range [][]Shard{m.HeldOut, m.Shards} {
		for _, s := range list {
			if s.Tokens < 1 || s.Tokens > MaxShard/int64(m.Width) || s.Bytes < 0 || s.Bytes > math.MaxInt64/int64(MaxManifest) {
				return fmt.Errorf("shard %v has %d tokens of %d bytes: a shard has 1 to %d tokens", s.Digest, s.Tokens, s.Bytes, MaxShard/m.Width)
			}
			if seen[s.Digest] {
				return fmt.Errorf("shard %v is there twice", s.Digest)
			}
			seen[s.Digest] = true
		}
	}
	return m.validateMixture()
}

func (t Tokenizer) validate() error {
	if err := checkText(t.Name); err != nil {
		return err
	}
	switch {
	case t.Size < 1 || t.Size > math.MaxInt32:
		return fmt.Errorf("its tokenizer has %d ids", t.Size)
	case t.End < -1 || int(t.End) >= t.Size:
		return fmt.Errorf("its end token is %d, of %d ids", t.End, t.Size)
	case t.Digest == Digest{} && t != ByteTokenizer():
		return fmt.Errorf("its tokenizer %q has no digest", t.Name)
	}
	return nil
}

func checkText(text string) error {
	if len(text) > maxText || !utf8.ValidString(text) {
		return fmt.Errorf("%.80q has more than %d bytes or is not UTF-8", text, maxText)
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			return fmt.Errorf("%.80q has a control character", text)
		}
	}
	return nil
}

// checkMirrors takes folders that are served over HTTPS: a mirror cannot lie about what a
// shard is, and nobody on the way should see what a node reads.
func checkMirrors(mirrors []string) error {
	if len(mirrors) > maxMirrors {
		return fmt.Errorf("it names %d mirrors, of at most %d", len(mirrors), maxMirrors)
	}
	for _, m := range mirrors {
		u, err := url.Parse(m)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("mirror %.200q is no address of a folder such as https://example.org/corpus", m)
		}
	}
	return nil
}

// Tokens is the number of tokens in shards, and Bytes of the text that they stand for.
func Tokens(shards []Shard) (tokens, text int64) {
	for _, s := range shards {
		tokens += s.Tokens
		text += s.Bytes
	}
	return tokens, text
}

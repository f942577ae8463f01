package shards

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"atoll/tensor/token"
)

// Names of the files of a corpus in its folder.
const (
	ManifestFile  = "manifest.json"
	TokenizerFile = "tokenizer.json"
	shardFolder   = "shards"
)

// Dir is a corpus in a folder. It may lack shards.
type Dir struct {
	Path     string
	Manifest *Manifest
}

// ShardFile is where a folder has a shard.
func ShardFile(dir string, d Digest) string {
	return filepath.Join(dir, shardFolder, d.String()+".bin")
}

// IsDir tells whether a folder has a corpus.
func IsDir(path string) bool {
	_, err := os.Stat(filepath.Join(path, ManifestFile))
	return path != "" && err == nil
}

// OpenDir reads the manifest of the corpus in a folder.
func OpenDir(path string) (*Dir, error) {
	b, err := readLimited(filepath.Join(path, ManifestFile), MaxManifest)
	if err != nil {
		return nil, fmt.Errorf("open corpus: %w: pass a folder that `atoll data build` made", err)
	}
	m, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("open corpus %s: %w", path, err)
	}
	return &Dir{path, m}, nil
}

// Tokenizer reads the tokenizer of the corpus.
func (d *Dir) Tokenizer() (token.Tokenizer, error) {
	t, _, err := ReadTokenizer(d.Path, d.Manifest.Tokenizer.Digest)
	if err == nil && t.Size() != d.Manifest.Tokenizer.Size {
		err = fmt.Errorf("the tokenizer of %s has %d ids, the manifest wants %d", d.Path, t.Size(), d.Manifest.Tokenizer.Size)
	}
	return t, err
}

// ReadTokenizer reads the tokenizer.json of a folder, which must have a digest. Zeros name
// the tokenizer of bytes, which has no file.
func ReadTokenizer(dir string, digest Digest) (token.Tokenizer, []byte, error) {
	if digest == (Digest{}) {
		return token.Byte, nil, nil
	}
	b, err := ReadTokenizerFile(dir, digest)
	if err != nil {
		return nil, nil, err
	}
	bpe, err := token.Parse(b)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, TokenizerFile), err)
	}
	return bpe, b, nil
}

// ReadTokenizerFile reads the bytes of the tokenizer.json of a folder, which must have a digest.
func ReadTokenizerFile(dir string, digest Digest) ([]byte, error) {
	path := filepath.Join(dir, TokenizerFile)
	b, err := readLimited(path, token.MaxFile)
	if err != nil {
		return nil, err
	}
	if found := Sum(b); found != digest {
		return nil, fmt.Errorf("%s has the digest %v, want %v", path, found, digest)
	}
	return b, nil
}

// ErrMissing is wrapped by the error of a shard that a folder does not have.
var ErrMissing = errors.New("it is not there")

// Read returns the tokens of a shard, after it has verified them.
func (d *Dir) Read(ctx context.Context, s Shard) ([]int32, error) {
	b, err := d.Fetch(ctx, s)
	if err != nil {
		return nil, err
	}
	return d.Manifest.Decode(s, b)
}

// Check tells whether these are the bytes of a shard, and tokens of the vocabulary.
func (m *Manifest) Check(s Shard, b []byte) error {
	switch {
	case int64(len(b)) != s.Tokens*int64(m.Width):
		return fmt.Errorf("shard %v has %d bytes, the manifest wants %d tokens of %d bytes", s.Digest, len(b), s.Tokens, m.Width)
	case Sum(b) != s.Digest:
		return fmt.Errorf("shard %v has the digest %v: its bytes are damaged", s.Digest, Sum(b))
	}
	for i := range int(s.Tokens) {
		if id := tokenAt(b, m.Width, i); id >= uint32(m.Tokenizer.Size) {
			return fmt.Errorf("shard %v has the token %d, of %d ids", s.Digest, id, m.Tokenizer.Size)
		}
	}
	return nil
}

// Decode returns the tokens in the bytes of a shard, if they are the right bytes.
func (m *Manifest) Decode(s Shard, b []byte) ([]int32, error) {
	if err := m.Check(s, b); err != nil {
		return nil, err
	}
	return TokensOf(b, m.Width), nil
}

// TokensOf returns the tokens in the bytes of a shard, or of a part of it: AppendTokens back.
func TokensOf(b []byte, width int) []int32 {
	tokens := make([]int32, len(b)/width)
	for i := range tokens {
		tokens[i] = int32(tokenAt(b, width, i))
	}
	return tokens
}

// tokenAt is token i of a shard.
func tokenAt(b []byte, width, i int) uint32 {
	if width == 2 {
		return uint32(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return binary.LittleEndian.Uint32(b[4*i:])
}

// AppendTokens adds tokens to the bytes of a shard.
func AppendTokens(b []byte, width int, tokens []int32) []byte {
	for _, id := range tokens {
		if width == 2 {
			b = binary.LittleEndian.AppendUint16(b, uint16(id))
		} else {
			b = binary.LittleEndian.AppendUint32(b, uint32(id))
		}
	}
	return b
}

// FileHas tells whether there is a file of a shard's length at most that has a digest.
func FileHas(path string, d Digest) bool {
	b, err := readLimited(path, MaxShard)
	return err == nil && Sum(b) == d
}

// readLimited reads a file of at most so many bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return b, err
}

// WriteFile writes a file so that it is there in whole or not at all.
func WriteFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

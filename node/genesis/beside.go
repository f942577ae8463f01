package genesis

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"atoll/gossip/wire"
	"atoll/node/files"
)

// BesideFolder is where a node's folder keeps the files that belong beside the weights of its run's model.
const BesideFolder = "model"

// File is one of them, which exports have as it was brought.
type File struct {
	Name   string // as transformers calls it
	Size   int64  // bytes
	Digest string // in hex
}

// Sum is what the digest says in hex.
func (f File) Sum() wire.Digest {
	b, _ := hex.DecodeString(f.Digest) // Validate has read it
	return wire.Digest(b)
}

// Limits of such files.
const (
	maxFiles      = 64
	maxFilesBytes = 2 * wire.MaxBlob // several times the largest tokenizer
)

// besideNames are the files that transformers writes and reads beside weights: of tokenizers, templates and what generates texts.
var besideNames = regexp.MustCompile(`^(generation_config\.json|` + tokenizers +
	`|merges\.txt|(tokenizer_config|special_tokens_map|added_tokens|chat_template)\.json|chat_template\.jinja|additional_chat_templates/[a-z0-9_-]{1,64}\.jinja)$`)

// tokenizers are those of which one is enough to cut texts into tokens.
const tokenizers = `(tokenizer|vocab|tekken)\.json|vocab\.txt|(tokenizer|spiece|sentencepiece|sentencepiece\.bpe|tiktoken)\.model`

var tokenizerNames = regexp.MustCompile(`^(` + tokenizers + `)$`)

// HasTokenizer says that the files have what cuts texts into tokens.
func HasTokenizer(list []File) bool {
	return slices.ContainsFunc(list, func(f File) bool { return tokenizerNames.MatchString(f.Name) })
}

// TokenizerIn is where a node's folder has the tokenizer that the model brought, "" where it brought none.
func (g Genesis) TokenizerIn(home string) string {
	if !HasTokenizer(g.Files) {
		return ""
	}
	return filepath.Join(home, BesideFolder)
}

// AddFiles finds the files in the folder of a model, unless the source has a tokenizer already.
func (s *Source) AddFiles(dir string) error {
	if HasTokenizer(s.Files) {
		return nil
	}
	s.Files, s.Beside = nil, map[string][]byte{}
	var names []string
	for _, pattern := range []string{"*", "additional_chat_templates/*"} {
		found, _ := fs.Glob(os.DirFS(dir), pattern) // what cannot be read is not there
		names = append(names, found...)
	}
	slices.Sort(names)
	for _, name := range names {
		if !besideNames.MatchString(name) {
			continue
		}
		b, err := readBeside(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		d := wire.Sum(b)
		s.Files, s.Beside[name] = append(s.Files, File{name, int64(len(b)), hex.EncodeToString(d[:])}), b
	}
	if err := checkFiles(s.Files); err != nil {
		return fmt.Errorf("%s: %w: move what the model does not need out of the folder", dir, err)
	}
	return nil
}

// readBeside reads a file that a run can have.
func readBeside(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file, or a link to one that is not there: fetch the model anew", path)
	case err == nil && info.Size() > wire.MaxBlob:
		return nil, fmt.Errorf("%s has %d bytes; a run has room for %d: move it out of the folder if the model does not need it", path, info.Size(), wire.MaxBlob)
	}
	b, err := os.ReadFile(path)
	if err == nil && (len(b) == 0 || bytes.HasPrefix(b, []byte("version https://git-lfs")) || strings.HasSuffix(path, ".json") && !json.Valid(b)) {
		err = fmt.Errorf("%s is empty, a pointer of git-lfs, or cut off: fetch it anew", path)
	}
	return b, err
}

// checkFiles says what is wrong with the first that no run can have.
func checkFiles(list []File) error {
	last, all := "", int64(0)
	for _, f := range list {
		switch all += f.Size; {
		case !besideNames.MatchString(f.Name):
			return fmt.Errorf("there is no place for a file named %.80q: transformers reads none beside weights", f.Name)
		case f.Name <= last:
			return fmt.Errorf("%q is not in its place: use each name once, in their order", f.Name)
		case !isDigest(f.Digest):
			return fmt.Errorf("%q has the digest %.80q; use %d hex digits, in lower case", f.Name, f.Digest, sha256Hex)
		case f.Size < 1 || f.Size > wire.MaxBlob || all > maxFilesBytes:
			return fmt.Errorf("%q has %d bytes; use 1 to %d, and %d for all", f.Name, f.Size, wire.MaxBlob, maxFilesBytes)
		}
		last = f.Name
	}
	if n := len(list); n > maxFiles {
		return fmt.Errorf("there are %d files beside the weights; use at most %d", n, maxFiles)
	}
	return nil
}

// SaveBeside writes the files into the folder of a node; there are none of a nil Source.
func (s *Source) SaveBeside(home string) (err error) {
	if s == nil {
		return nil
	}
	for name, b := range s.Beside {
		path := filepath.Join(home, BesideFolder, filepath.FromSlash(name))
		if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = files.Write(path, b, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// validateFiles makes sure that a model which somebody brings has the files that a run can have, and no other model has any.
func (g Genesis) validateFiles() error {
	if len(g.Files) > 0 && g.BuiltIn() {
		return fmt.Errorf("genesis: Files has %q, and the model is built in: those of a corpus are of the corpus", g.Files[0].Name)
	}
	if err := checkFiles(g.Files); err != nil {
		return fmt.Errorf("genesis: Files: %w", err)
	}
	return nil
}

// ReadFiles reads the run's files beside the weights from a node's folder.
func (g Genesis) ReadFiles(home string) (map[string][]byte, error) {
	contents := make(map[string][]byte, len(g.Files))
	for _, f := range g.Files {
		path := filepath.Join(home, BesideFolder, filepath.FromSlash(f.Name))
		b, err := os.ReadFile(path)
		if err == nil && wire.Sum(b) != f.Sum() {
			err = fmt.Errorf("%s is not the file of the run", path)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: copy it from the folder of the model that the run was made from, or from another node's", err)
		}
		contents[f.Name] = b
	}
	return contents, nil
}

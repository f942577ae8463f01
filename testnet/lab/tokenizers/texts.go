package tokenizers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"atoll/optimizer/trainer/corpus"
	"atoll/testnet/lab/program"
)

// Names of texts.
const (
	prose   = "prose"
	code    = "code"
	mixture = "mixture"
)

var textNames = []string{prose, code, mixture}

// world is where cells are played.
type world struct {
	typed
	log io.Writer
}

// builtCorpus is a corpus of a text.
type builtCorpus struct {
	dir           string
	bytesPerToken float64
}

func (w *world) path(name string) string { return filepath.Join(w.work, name) }

// prepare writes the texts and trains the tokenizer on both.
func (w *world) prepare(ctx context.Context) error {
	book, err := corpus.Open(corpus.Prose)
	if err != nil {
		return err
	}
	source, err := corpus.Open(corpus.GoCode)
	if err != nil {
		return err
	}
	// As much code as prose, so that a mixture holds out as much of both.
	size := len(book.Train()) + len(book.HeldOut())
	if len(source.Train()) < size {
		return fmt.Errorf("the source of Go has %d bytes, less than the prose, which has %d", len(source.Train()), size)
	}
	for name, text := range map[string][]byte{prose: append(book.Train(), book.HeldOut()...), code: source.Train()[:size]} {
		if err := os.WriteFile(w.path(name+".txt"), text, 0o644); err != nil {
			return err
		}
	}
	return w.once(ctx, w.tokenizer(), "tokenizer.json", "data", "tokenizer", "--train", strconv.Itoa(w.vocab), w.path(prose+".txt"), w.path(code+".txt"))
}

func (w *world) tokenizer() string { return w.path(fmt.Sprintf("bpe%d", w.vocab)) }

// once has the program make a folder, unless it has made it: the file is the last that it writes.
func (w *world) once(ctx context.Context, dir, last string, args ...string) error {
	_, err := os.Stat(filepath.Join(dir, last))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err = program.Output(ctx, w.log, nil, w.atoll, append(args, "--out", dir)...)
	return err
}

// corpus builds the corpus of a text in some tokens, unless that was done.
func (w *world) corpus(ctx context.Context, name, tokens string) (c builtCorpus, err error) {
	c.dir = w.path(name + "-" + tokens)
	var flags []string
	if tokens == inBPE {
		c.dir += strconv.Itoa(w.vocab)
		flags = []string{"--tokenizer", w.tokenizer()}
	}
	if name == mixture {
		var parts []string
		for _, part := range []string{prose, code} {
			of, err := w.corpus(ctx, part, tokens)
			if err != nil {
				return c, err
			}
			parts = append(parts, of.dir+"=1")
		}
		err = w.once(ctx, c.dir, "manifest.json", append([]string{"data", "mix"}, parts...)...)
	} else {
		err = w.once(ctx, c.dir, "manifest.json", append([]string{"data", "build", w.path(name + ".txt")}, flags...)...)
	}
	if err == nil {
		c.bytesPerToken, err = w.bytesPerToken(ctx, c.dir)
	}
	return c, err
}

// bytesPerToken is what a row's tokens stand for on average: of a mixture, by the shares of its corpora.
func (w *world) bytesPerToken(ctx context.Context, dir string) (float64, error) {
	out, err := program.Output(ctx, w.log, nil, w.atoll, "data", "show", dir, "--json")
	if err != nil {
		return 0, err
	}
	type part struct {
		Tokens, Bytes int64
		Share         float64
	}
	var all struct {
		part
		Mixture []part
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return 0, fmt.Errorf("what the program shows of %s: %w", dir, err)
	}
	if len(all.Mixture) == 0 {
		all.Share = 1
		all.Mixture = []part{all.part}
	}
	mean := 0.0
	for _, p := range all.Mixture {
		mean += p.Share * float64(p.Bytes) / float64(p.Tokens)
	}
	return mean, nil
}

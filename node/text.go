package node

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/store"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
)

// readText reads the text that training and live evaluation need. Nobody trains on another text than the run's. An
// observer who was told of none evaluates nothing.
func (n *node) readText(ctx context.Context) error {
	if n.genesis.Corpus != nil {
		return n.readCorpus(ctx)
	}
	if !n.genesis.BuiltIn() && n.cfg.Observe {
		n.cfg.EvalBytes = 0 // what such a model makes of text is for its learners to say
	}
	path, err := n.textPath()
	if err != nil {
		return err
	}
	if n.cfg.Observe && n.cfg.EvalBytes == 0 || !n.genesis.BuiltIn() && path == "" && n.genesis.Data.SHA256 == "" {
		return nil
	}
	text, err := n.openText(ctx, path)
	if err != nil && n.cfg.Observe && path == "" {
		n.evaluateNothing(err.Error())
		return nil
	}
	if err == nil {
		n.hasText(text)
	}
	return err
}

// longText is the size of a text whose reading delays a newcomer: it takes a tenth of a second. A small file takes as long as one of smallFile.
const (
	longText  = 64 << 20
	smallFile = 16 << 10
)

// readsLong reports whether the text takes long to read: it is large, or many files. Shards are not read, and peers are asked for
// them together with the model.
func (n *node) readsLong() bool {
	path, err := n.textPath()
	if err != nil || path == corpus.Prose || path == corpus.GoCode || n.genesis.Corpus != nil {
		return path == corpus.GoCode
	}
	size, most := int64(0), cmp.Or(n.cfg.longText, longText)
	tree := os.DirFS(filepath.Dir(path))
	_ = fs.WalkDir(tree, filepath.Base(path), func(name string, _ fs.DirEntry, err error) error { // who reads it says what is wrong
		if err != nil {
			return nil
		}
		if info, err := fs.Stat(tree, name); err == nil {
			size += max(info.Size(), smallFile)
		}
		if size > most {
			return fs.SkipAll
		}
		return nil
	})
	return size > most
}

// lateText is the text on the training thread, read there unless it was read before. The loop calls has to record it.
func (n *node) lateText(ctx context.Context) (data trainer.Source, has func(), err error) {
	if n.corpus != nil || n.data != nil {
		return n.text(), func() {}, nil
	}
	path, err := n.textPath()
	if err != nil {
		return nil, nil, err
	}
	text, err := n.openText(ctx, path)
	return text, func() { n.hasText(text) }, err
}

// within returns what do comes to, or ctx's error as soon as ctx ends. Then do goes on beside: it cannot be cut short.
func within[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case r := <-done:
		return r.value, r.err
	}
}

// hasText records the text, before the loop or on it.
func (n *node) hasText(text *corpus.Corpus) {
	n.data = text
	if note := text.Note(); note != "" {
		n.screen.Event("text", "", note)
	}
	if n.genesis.Data.SHA256 == "" {
		n.screen.Event("text", "", fmt.Sprintf("the run does not say which text to train on; this node trains on %s", genesis.Data{Name: text.Name(), SHA256: text.SHA256()}))
	}
}

// textPath is what corpus.Open opens: --data, or what an earlier start was told.
func (n *node) textPath() (string, error) {
	if n.cfg.Data == corpus.GoCode {
		return n.cfg.Data, nil
	}
	return n.dataPath()
}

// dataPath is --data, or what an earlier start was told.
func (n *node) dataPath() (string, error) {
	if n.cfg.Data == "" {
		return store.LoadText(n.cfg.Dir)
	}
	return filepath.Abs(n.cfg.Data) // the next start may be in another folder
}

// evaluateNothing says why the node measures no model.
func (n *node) evaluateNothing(why string) {
	n.cfg.EvalBytes = 0
	n.screen.Event("no evaluation", "", why)
}

// openText opens the text at a path, and remembers the path. It refuses a text that is not the run's, or is too short. A leaver
// does not wait until it is read.
func (n *node) openText(ctx context.Context, path string) (*corpus.Corpus, error) {
	text, err := within(ctx, func() (*corpus.Corpus, error) { return corpus.Open(path) })
	if err != nil {
		return nil, err
	}
	if err := n.genesis.Data.Check(text.Name(), text.SHA256(), path); err != nil {
		return nil, err
	}
	if err := text.Fits(n.genesis.Model.Context); err != nil {
		return nil, err
	}
	n.check("remember the text", n.rememberText(path))
	return text, nil
}

func (n *node) rememberText(path string) error {
	if known, err := store.LoadText(n.cfg.Dir); path == corpus.Prose || err == nil && path == known {
		return nil
	}
	return n.cfg.disk.WriteFile(n.cfg.Dir, store.TextFile, []byte(path))
}

// lacksData runs on the training thread: a step cannot begin, because its tokens are not there.
func (n *node) lacksData(err error) {
	n.post(func(core.Time) { n.screen.Event("waiting for data", "", err.Error()+"; the step is tried again") })
}

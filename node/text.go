package node

import (
	"context"
	"fmt"
	"path/filepath"

	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/store"
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
	if n.cfg.Observe && n.cfg.EvalBytes == 0 || !n.genesis.BuiltIn() && n.cfg.Data == "" && n.genesis.Data.SHA256 == "" {
		return nil
	}
	path, err := n.textPath()
	if err != nil {
		return err
	}
	n.data, err = n.openText(path)
	switch {
	case err != nil && n.cfg.Observe && path == "":
		n.evaluateNothing(err.Error())
		return nil
	case err != nil:
		return err
	case n.genesis.Data.SHA256 == "":
		n.view.event(n, "text", "", fmt.Sprintf("the run does not say which text to train on; this node trains on %s", genesis.Data{Name: n.data.Name(), SHA256: n.data.SHA256()}))
	}
	n.check("remember the text", n.rememberText(path))
	return nil
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
	n.view.event(n, "no evaluation", "", why)
}

func (n *node) openText(path string) (*corpus.Corpus, error) {
	text, err := corpus.Open(path)
	if err != nil {
		return nil, err
	}
	if err := n.genesis.Data.Check(text.Name(), text.SHA256(), path); err != nil {
		return nil, err
	}
	return text, text.Fits(n.genesis.Model.Context)
}

func (n *node) rememberText(path string) error {
	if known, err := store.LoadText(n.cfg.Dir); path == corpus.Prose || err == nil && path == known {
		return nil
	}
	return n.cfg.disk.WriteFile(n.cfg.Dir, store.TextFile, []byte(path))
}

// lacksData runs on the training thread: a step cannot begin, because its tokens are not there.
func (n *node) lacksData(err error) {
	n.post(func(core.Time) { n.view.event(n, "waiting for data", "", err.Error()+"; the step is tried again") })
}

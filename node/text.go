package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/optimizer/trainer/corpus"
)

// OwnText is Data.Name of a run in which each learner trains on its own text. Such a run has no Data.SHA256.
const OwnText = "each learner's own text"

// Check refuses a text that is not the run's. name and sha256 are the text's; path is the --data that named it, "" if
// nothing did.
func (d Data) Check(name, sha256, path string) error {
	switch {
	case d.SHA256 == "" && d.Name == OwnText && path == "":
		return fmt.Errorf("each learner of this run trains on its own text; pass --data PATH with yours")
	case d.SHA256 == "" || d.SHA256 == sha256:
		return nil
	case path == "":
		return fmt.Errorf("the run trains on %s; without --data this node would train on %s; %s", textName(d.Name, d.SHA256), textName(name, sha256), textRemedy)
	}
	return fmt.Errorf("the run trains on %s, but %s is %s; %s", textName(d.Name, d.SHA256), path, textName(name, sha256), textRemedy)
}

const textRemedy = "pass --data PATH with the text of the run, unchanged"

func textName(name, sha256 string) string { return fmt.Sprintf("%q (sha256 %.16s)", name, sha256) }

// textFile keeps, in a node's folder, the path of the text that the node was told to train on, for starts without --data.
const textFile = "text"

// FolderText is the path of the text that the node of a folder was last told to train on, "" if it was told none.
func FolderText(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, textFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

// readText reads the text that training and live evaluation need. Nobody trains on another text than the run's. An
// observer who was told of none evaluates nothing.
func (n *node) readText() error {
	if n.cfg.Observe && n.cfg.EvalBytes == 0 {
		return nil
	}
	path, err := n.textPath()
	if err != nil {
		return err
	}
	n.data, err = n.openText(path)
	switch {
	case err != nil && n.cfg.Observe && path == "":
		n.cfg.EvalBytes = 0
		n.view.event(n, "no evaluation", "", err.Error())
		return nil
	case err != nil:
		return err
	case n.genesis.Data.SHA256 == "":
		n.view.event(n, "text", "", fmt.Sprintf("the run does not say which text to train on; this node trains on %s", textName(n.data.Name(), n.data.SHA256())))
	}
	n.check("remember the text", n.rememberText(path))
	return nil
}

// textPath is what corpus.Open opens: --data, or what an earlier start was told.
func (n *node) textPath() (string, error) {
	if n.cfg.Data == corpus.Prose {
		return FolderText(n.cfg.Dir)
	}
	if n.cfg.Data == corpus.GoCode {
		return n.cfg.Data, nil
	}
	return filepath.Abs(n.cfg.Data) // the next start may be in another folder
}

func (n *node) openText(path string) (*corpus.Corpus, error) {
	text, err := corpus.Open(path)
	if want := n.genesis.Data; err != nil && path == corpus.Prose && want.SHA256 != "" {
		return nil, fmt.Errorf("the run trains on %s: %w; %s", textName(want.Name, want.SHA256), err, textRemedy)
	}
	if err != nil {
		return nil, err
	}
	if err := text.Fits(n.genesis.Model.Context); err != nil {
		return nil, err
	}
	return text, n.genesis.Data.Check(text.Name(), text.SHA256(), path)
}

func (n *node) rememberText(path string) error {
	if known, err := FolderText(n.cfg.Dir); path == corpus.Prose || err == nil && path == known {
		return nil
	}
	return n.cfg.disk.WriteFile(n.cfg.Dir, textFile, []byte(path))
}

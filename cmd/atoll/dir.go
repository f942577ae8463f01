package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/tensor"
	"atoll/tensor/token"
)

// dirFlag is the folder of a node that exists already.
type dirFlag struct {
	Dir string `help:"The node's folder. Default: the only one in the current folder." placeholder:"DIR"`
}

// folder is the folder that was asked for, or the only one there is.
func (f dirFlag) folder() (string, error) {
	if f.Dir != "" {
		return f.Dir, nil
	}
	return findFolder(".")
}

// model is the run and the newest model of that folder, with the tokens that it has folded.
// Long replays say on stderr how far they are.
func (f dirFlag) model(ctx context.Context, out *console) (g genesis.Genesis, slab *tensor.Slab, folded uint64, err error) {
	dir, err := f.folder()
	if err != nil {
		return g, nil, 0, err
	}
	return inspect.LoadModel(replaying(ctx, out, loadingModel), dir)
}

// loadingModel is what takes long in loading a model: the folding of rounds that the disk has as deltas.
const loadingModel = "loading the model"

// tokenizer is the run's, with its file, see inspect.Tokenizer.
func (f dirFlag) tokenizer(g genesis.Genesis) (token.Tokenizer, []byte, error) {
	dir, err := f.folder()
	if err != nil {
		return nil, nil, err
	}
	return inspect.Tokenizer(dir, g)
}

// nodeFiles are in every node's folder.
var nodeFiles = []string{"key", "genesis"}

// findFolder returns the only node folder among dir and the folders in it.
func findFolder(dir string) (string, error) {
	if isNodeFolder(dir) {
		return dir, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("look for a node's folder: %w", err)
	}
	var found []string
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); e.IsDir() && isNodeFolder(path) {
			found = append(found, path)
		}
	}
	switch len(found) {
	case 0:
		return "", badUsage("there is no node's folder here; pass --dir DIR, the folder that `atoll join` said it uses")
	case 1:
		return found[0], nil
	}
	return "", badUsage("there are several nodes' folders here; pass --dir with one of %s", strings.Join(found, ", "))
}

func isNodeFolder(dir string) bool {
	for _, name := range nodeFiles {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

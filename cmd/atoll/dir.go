package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/node/joinlink"
	"atoll/node/status"
	"atoll/tensor"
	"atoll/testnet"
)

// dirArg is the folder of a node that exists already.
type dirArg struct {
	Dir string `arg:"" optional:"" help:"The node's folder. Default: the only one here, which is the current folder or one directly in it."`
}

// folder is the folder that was typed, or the only one here, of which the answer then tells.
func (f dirArg) folder(out *cli.Console) (string, error) {
	if f.Dir != "" {
		return f.Dir, checkFolder(f.Dir)
	}
	dir, err := findFolder(".", out.Typed)
	if err == nil {
		out.Say("the folder here: %s", dir)
	}
	return dir, err
}

// checkFolder says what is wrong with a word that should be the folder of a node.
func checkFolder(dir string) error {
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return &cli.UsageError{Text: fmt.Sprintf("there is no folder %q", quoted(dir)), Why: err}
	case err == nil && !info.IsDir():
		return cli.BadUsage("%q is a file: type a folder", quoted(dir))
	case testnet.IsWorld(dir):
		return cli.BadUsage("%s is a testnet: type one of its nodes, such as %s", dir, status.ShellWord(filepath.Join(dir, "node0")))
	}
	return nil
}

// mayBeFolder is checkFolder for one that need not be there yet.
func mayBeFolder(dir string) error {
	if err := checkFolder(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// quoted is what a message may quote of a word that should be a folder and could be a part of a link, whose secret has 22 characters: what is left where a link is cut has more after it.
func quoted(word string) string {
	const most = 40
	if len(word) <= most && !joinlink.Is(word) {
		return word
	}
	return joinlink.Shown(word)
}

// model is the folder, its run and the newest model, with the tokens that it has folded.
// Long replays say on stderr how far they are.
func (f dirArg) model(ctx context.Context, out *cli.Console) (dir string, g genesis.Genesis, slab *tensor.Slab, folded uint64, err error) {
	if dir, err = f.folder(out); err == nil {
		g, slab, folded, err = inspect.LoadModel(replaying(ctx, out, loadingModel), dir)
	}
	return dir, g, slab, folded, err
}

// loadingModel is what takes long in loading a model: the folding of rounds that the disk has as deltas.
const loadingModel = "loading the model"

// findFolder returns the only folder of a node among dir and the folders in it. If there are more or none, it says what to type
// instead of what was.
func findFolder(dir string, typed []string) (string, error) {
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
	again := "atoll"
	for _, word := range typed {
		again += " " + status.ShellWord(word)
	}
	switch len(found) {
	case 0:
		return "", cli.BadUsage("there is no atoll folder here: go to one, or type `%s DIR`; `atoll new` makes one, and so does `atoll join LINK`", again)
	case 1:
		return found[0], nil
	}
	return "", cli.BadUsage("there are %d atoll folders here, %s: type which, such as `%s %s`", len(found), strings.Join(found, ", "), again, status.ShellWord(found[0]))
}

// isNodeFolder says whether a folder is that of a node, or of one that will be the first of a run.
func isNodeFolder(dir string) bool { return isFile(dir, genesisName) && !testnet.IsWorld(dir) }

// Files of a node's folder.
const (
	genesisName = "genesis"
	ownerName   = "owner" // key of the run's owner, where it was made here
	keyName     = "key"
)

func isFile(dir, name string) bool {
	info, err := os.Stat(filepath.Join(dir, name))
	return err == nil && !info.IsDir()
}

// worldOrFolder is the folder that was typed, the testnet's here, or the only node's folder here.
func (f dirArg) worldOrFolder(out *cli.Console) (string, error) {
	if dir := cmp.Or(f.Dir, "."); testnet.IsWorld(dir) {
		return dir, nil
	}
	return f.folder(out)
}

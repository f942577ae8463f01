package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"atoll/node/content"
	"atoll/node/entry"
	"atoll/node/genesis"
	"atoll/node/replica"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// learnFirst makes sure that the folder has what training begins with: from --init, from an
// earlier start, or from the peers of the link.
func (n *node) learnFirst(ctx context.Context) error {
	if !n.genesis.Given() {
		return nil
	}
	if n.cfg.Init != "" {
		if err := n.copyFirst(); err != nil {
			return err
		}
	}
	var err error
	if n.first, n.given, err = n.genesis.LoadFirst(n.cfg.Dir); err == nil {
		return nil
	}
	if len(n.dials) == 0 {
		return fmt.Errorf("%w: give them with --init, the file or folder that the run was made from, as to the first node of a run", err)
	}
	if !errors.Is(err, genesis.ErrNoFirst) {
		n.screen.Alarm("damaged", "", fmt.Sprintf("%v: fetches what is damaged from peers", err), n.checkDisk())
		if err := genesis.SetFirstAside(n.cfg.Dir); err != nil {
			return store.Explain(err, n.cfg.Dir)
		}
	}
	if err := n.fetchFirst(ctx); err != nil {
		return err
	}
	n.first, n.given, err = n.genesis.LoadFirst(n.cfg.Dir)
	return err
}

// copyFirst copies the initial values that the user names into the folder.
func (n *node) copyFirst() error {
	s, err := n.genesis.LoadTensors(n.cfg.Init)
	if err != nil {
		return fmt.Errorf("--init: %w", err)
	}
	if _, err := n.genesis.CheckFirst(s.Data); err != nil {
		return fmt.Errorf("--init %s: %w", n.cfg.Init, err)
	}
	return store.Explain(n.genesis.SaveFirst(n.cfg.Dir, s), n.cfg.Dir)
}

// fetchFirst fetches the initial values chunk by chunk. What is there stays for another start.
func (n *node) fetchFirst(ctx context.Context) error {
	if err := n.allowed(ctx); err != nil {
		return err
	}
	peers, err := n.linkPeers()
	if err != nil {
		return err
	}
	list, err := peers.List(ctx, n.genesis)
	if err != nil {
		return fmt.Errorf("fetch the run's initial values: %w", err)
	}
	part, err := n.genesis.OpenFirst(n.cfg.Dir, list)
	if err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	if err := peers.Fill(ctx, part); err != nil {
		return errors.Join(fmt.Errorf("fetch the run's initial values: %w", err), part.Close())
	}
	return part.Finish()
}

// learnFiles makes sure that the folder has the files beside the weights, from --init or from the peers of the link, and opens them for
// those who ask.
func (n *node) learnFiles(ctx context.Context) (err error) {
	if len(n.genesis.Files) == 0 {
		return nil
	}
	for _, f := range n.genesis.Files {
		remedy := fmt.Sprintf("copy %s into %s, from the folder of the model that the run was made from or from another node's", f.Name, n.besideDir())
		if err := n.obtain(ctx, genesis.BesideFolder, n.cfg.Init, wanted{f.Name, f.Name + " of the run's model", f.Sum(), f.Size, remedy}); err != nil {
			return err
		}
	}
	if n.beside, err = content.Open(n.besideDir(), 0, nil); err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	for _, f := range n.genesis.Files {
		n.beside.Link(f.Sum(), filepath.Join(n.besideDir(), filepath.FromSlash(f.Name)), f.Size)
	}
	return nil
}

func (n *node) besideDir() string { return filepath.Join(n.cfg.Dir, genesis.BesideFolder) }

// blobs are the files that this node gives its peers and has of them: shards of a corpus, or what is beside weights.
func (n *node) blobs() replica.Blobs {
	if n.beside != nil {
		return n.beside
	}
	return n.corpus
}

// linkPeers are the peers of the link, before there is a machine that asks them. They answer who takes part.
func (n *node) linkPeers() (*entry.Peers, error) {
	return entry.New(n.host, n.dials, n.showStage), n.enter()
}

// firstTips are the tips of round 0. Their values are in memory until the replica is made, and
// then read or drawn again where they are needed.
func (n *node) firstTips() []*outer.Tip {
	if n.given != nil {
		return n.genesis.TipsOf(n.given.Data)
	}
	tips, err := n.genesis.TipsIn(n.cfg.Dir)
	if err != nil {
		n.fail(fmt.Errorf("%w: start the node again, so that it fetches them", err))
		return n.genesis.TipsOf(n.genesis.NewSlab().Data)
	}
	return tips
}

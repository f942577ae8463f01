package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/genesis"
)

// ErrNoPeers says that no peer of the link could be reached.
var ErrNoPeers = errors.New("no peer of the join link answered")

// learnGenesis asks the peers of the link for the genesis, unless it is known.
func (n *node) learnGenesis(ctx context.Context) error {
	if n.genesis.Format != 0 {
		return nil
	}
	addrs := n.cfg.addrs()
	if len(addrs) == 0 {
		return fmt.Errorf("there is no genesis in %s and the link names no peer; pass a link with an address, or --peer ADDR", n.cfg.Dir)
	}
	raw, err := n.askGenesis(ctx, addrs)
	if err != nil {
		return fmt.Errorf("join run %v: %w", n.run, err)
	}
	n.genesis, err = genesis.Decode(raw)
	return err
}

// askGenesis asks one address after the other, until one answers, all refuse,
// or the time is over.
func (n *node) askGenesis(parent context.Context, addrs []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(parent, n.cfg.JoinWithin)
	defer cancel()
	failures := map[string]error{}
	for ctx.Err() == nil {
		for _, addr := range addrs {
			raw, err := n.genesisFrom(ctx, addr)
			if err == nil {
				return raw, nil
			}
			if errors.Is(err, p2p.ErrDuplicateKey) {
				return nil, duplicateKeyError(addr + " is connected to it")
			}
			if known := failures[addr]; known == nil || known.Error() != err.Error() {
				n.log.Warn("ask for the genesis, trying on", "addr", addr, "err", err)
			}
			failures[addr] = err
		}
		if err := allRefused(failures); err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	if err := parent.Err(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w within %v; tried %s; is one of them running, and can this machine reach it?", ErrNoPeers, n.cfg.JoinWithin, tried(addrs, failures))
}

// allRefused is one of the refusals if nobody is left who might still answer.
func allRefused(failures map[string]error) (refused error) {
	for _, err := range failures {
		if refusal := (*hello.Refusal)(nil); !errors.As(err, &refusal) && !errors.Is(err, p2p.ErrRefusedByPeer) {
			return nil
		}
		refused = err
	}
	return refused
}

func tried(addrs []string, failures map[string]error) string {
	var parts []string
	for _, a := range addrs {
		parts = append(parts, fmt.Sprintf("%s: %v", a, failures[a]))
	}
	return strings.Join(parts, "; ")
}

// genesisFrom returns the bytes of the genesis whose hash is the RunID.
func (n *node) genesisFrom(ctx context.Context, addr string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	n.showStage("dialling " + addr)
	id, err := n.host.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	n.showStage("genesis")
	req := wire.Request{Kind: wire.GetGenesis, Run: n.run}.Encode()
	raw, err := n.host.Call(ctx, id, req, wire.GetGenesis.MaxResponse())
	if err != nil {
		return nil, err
	}
	b, err := wire.OpenGenesis(n.run, raw)
	if err != nil {
		return nil, fmt.Errorf("ask %s for the genesis: %w", addr, err)
	}
	return b, nil
}

package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// genesisTimeout is how long a newcomer tries to get the genesis: several
// rounds of dialling over bad links.
const genesisTimeout = 60 * time.Second

// ErrNoPeers says that no peer of the link could be reached.
var ErrNoPeers = errors.New("no peer of the join link answered")

// learnGenesis asks the peers of the link for the genesis, unless it is known.
func (n *node) learnGenesis(ctx context.Context) error {
	if n.genesis.Format != 0 {
		return nil
	}
	addrs := append(append([]string{}, n.cfg.Link.Peers...), n.cfg.Peers...)
	if len(addrs) == 0 {
		return fmt.Errorf("there is no genesis in %s and the link names no peer; pass a link with an address, or --peer ADDR", n.cfg.Dir)
	}
	ctx, cancel := context.WithTimeout(ctx, genesisTimeout)
	defer cancel()
	failures := map[string]string{}
	for ctx.Err() == nil {
		for _, addr := range addrs {
			g, err := n.genesisFrom(ctx, addr)
			if err == nil {
				n.genesis = g
				return nil
			}
			failures[addr] = err.Error()
			n.log.Warn("genesis", "addr", addr, "err", err)
			if refusal := (*hello.Refusal)(nil); errors.As(err, &refusal) {
				return fmt.Errorf("join run %v: %w", n.run, err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return fmt.Errorf("join run %v: %w within %v; tried %s; is one of them running, and can this machine reach it?", n.run, ErrNoPeers, genesisTimeout, tried(addrs, failures))
}

func tried(addrs []string, failures map[string]string) string {
	var parts []string
	for _, a := range addrs {
		parts = append(parts, a+": "+failures[a])
	}
	return strings.Join(parts, "; ")
}

func (n *node) genesisFrom(ctx context.Context, addr string) (Genesis, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	id, err := n.host.Dial(ctx, addr)
	if err != nil {
		return Genesis{}, err
	}
	req := wire.Request{Kind: wire.GetGenesis, Run: n.run}.Encode()
	raw, err := n.host.Call(ctx, id, req, wire.GetGenesis.MaxResponse())
	if err != nil {
		return Genesis{}, err
	}
	res, err := wire.DecodeResponse(raw, wire.GetGenesis.MaxResponse())
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return Genesis{}, fmt.Errorf("ask %s for the genesis: %w", addr, err)
	}
	return DecodeGenesisFor(res.Body, n.run)
}

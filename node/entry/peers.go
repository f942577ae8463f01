// Package entry is what a node fetches from the peers of its link before it has a machine that could: the initial values of its
// run, and the files that its corpus needs. Who these peers are and what becomes of the files is the node's business.
package entry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"atoll/gossip/wire"
)

// Fetching from the peers of a link.
const (
	linkCall   = time.Minute      // a chunk over 40 kbit/s
	linkPause  = 2 * time.Second  // before peers are asked again that gave nothing
	linkWithin = 10 * time.Minute // without one chunk: then nobody who answers has them
)

// Host is what reaches the peers. It does not dial itself.
type Host interface {
	Dial(ctx context.Context, addr string) (wire.PeerID, error)
	Call(ctx context.Context, to wire.PeerID, request []byte, maxResponse int) ([]byte, error)
}

// Peers asks the peers of the link, whoever has what is asked for.
type Peers struct {
	host  Host
	addrs []string
	stage func(text string) // told how far it is

	mu     sync.Mutex
	failed map[string]time.Time // addresses, and when they last gave nothing
}

// New asks the peers at some addresses.
func New(host Host, addrs []string, stage func(text string)) *Peers {
	return &Peers{host: host, addrs: addrs, stage: stage, failed: map[string]time.Time{}}
}

// order are the addresses of the link, those first that never failed, then those that failed
// longest ago: one that is gone delays few chunks.
func (p *Peers) order() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	addrs := slices.Clone(p.addrs)
	slices.SortStableFunc(addrs, func(a, b string) int { return p.failed[a].Compare(p.failed[b]) })
	return addrs
}

func (p *Peers) fails(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed[addr] = time.Now()
}

// any tries one address after the other, again and again, until one does.
func (p *Peers) any(ctx context.Context, try func(ctx context.Context, addr string) error) error {
	ctx, cancel := context.WithTimeout(ctx, linkWithin)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		for _, addr := range p.order() {
			err := try(ctx, addr)
			if err == nil {
				return nil
			}
			p.fails(addr)
			last = fmt.Errorf("%s: %w", addr, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(linkPause):
		}
	}
	return errors.Join(context.Cause(ctx), last)
}

// ask asks the peer at an address, and returns the body of its answer.
func (p *Peers) ask(ctx context.Context, addr string, request wire.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, linkCall)
	defer cancel()
	id, err := p.host.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	raw, err := p.host.Call(ctx, id, request.Encode(), request.Kind.MaxResponse())
	if err != nil {
		return nil, err
	}
	return wire.OpenResponse(raw, request.Kind.MaxResponse())
}

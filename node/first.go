package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
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
	if len(n.cfg.addrs()) == 0 {
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

// firstAtOnce is how many chunks are asked for at a time: one is a quarter of a megabyte.
const firstAtOnce = 4

// linkFetch asks the peers of the link, whoever has what is asked for.
type linkFetch struct {
	n      *node
	mu     sync.Mutex
	failed map[string]time.Time // addresses, and when they last gave nothing
}

func newLinkFetch(n *node) *linkFetch { return &linkFetch{n: n, failed: map[string]time.Time{}} }

// order are the addresses of the link, those first that never failed, then those that failed
// longest ago: one that is gone delays few chunks.
func (f *linkFetch) order() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	addrs := slices.Clone(f.n.cfg.addrs())
	slices.SortStableFunc(addrs, func(a, b string) int { return f.failed[a].Compare(f.failed[b]) })
	return addrs
}

func (f *linkFetch) fails(addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed[addr] = time.Now()
}

// fetchFirst fetches the initial values chunk by chunk. What is there stays for another start.
func (n *node) fetchFirst(ctx context.Context) error {
	if err := n.allowed(ctx); err != nil {
		return err
	}
	f := newLinkFetch(n)
	list, err := f.list(ctx)
	if err != nil {
		return fmt.Errorf("fetch the run's initial values: %w", err)
	}
	part, err := n.genesis.OpenFirst(n.cfg.Dir, list)
	if err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	if err := f.fill(ctx, part); err != nil {
		return errors.Join(fmt.Errorf("fetch the run's initial values: %w", err), part.Close())
	}
	return part.Finish()
}

// list fetches the list of chunks.
func (f *linkFetch) list(ctx context.Context) (list [][]byte, err error) {
	for i, d := range f.n.genesis.FirstDigests() {
		b, err := f.chunk(ctx, d, f.n.genesis.ListSize(i))
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// fill fetches what is missing, several chunks at a time.
func (f *linkFetch) fill(ctx context.Context, part *genesis.FirstPart) error {
	missing, err := part.Missing()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	chunks, done := make(chan int), part.Chunks()-len(missing)
	var work sync.WaitGroup
	var mu sync.Mutex
	for range firstAtOnce {
		work.Go(func() {
			for i := range chunks {
				b, err := f.chunk(ctx, part.Digest(i), part.Size(i))
				if err == nil {
					err = part.Put(i, b)
				}
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				done++
				f.n.showStage(fmt.Sprintf("initial values: %d of %d chunks", done, part.Chunks()))
				mu.Unlock()
			}
		})
	}
	for _, i := range missing {
		select {
		case chunks <- i:
		case <-ctx.Done():
		}
	}
	close(chunks)
	work.Wait()
	return context.Cause(ctx)
}

// chunk asks one peer after the other for a chunk, until one gives it.
func (f *linkFetch) chunk(ctx context.Context, d wire.Digest, size int) (chunk []byte, err error) {
	err = f.any(ctx, func(ctx context.Context, addr string) error {
		chunk, err = f.askChunk(ctx, addr, d, size)
		if err == nil && wire.Sum(chunk) != d {
			err = errors.New("it does not have this part of the initial values")
		}
		return err
	})
	return chunk, err
}

// askChunk asks the peer at an address for a chunk.
func (f *linkFetch) askChunk(ctx context.Context, addr string, d wire.Digest, size int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, linkCall)
	defer cancel()
	id, err := f.reach(ctx, addr)
	if err != nil {
		return nil, err
	}
	b, err := f.call(ctx, id, wire.Request{Kind: wire.GetChunk, Digest: d})
	if err != nil {
		return nil, err
	}
	return codec.Unpack(b, size)
}

// any tries one address after the other, again and again, until one does.
func (f *linkFetch) any(ctx context.Context, try func(ctx context.Context, addr string) error) error {
	ctx, cancel := context.WithTimeout(ctx, linkWithin)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		for _, addr := range f.order() {
			err := try(ctx, addr)
			if err == nil {
				return nil
			}
			f.fails(addr)
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
func (f *linkFetch) ask(ctx context.Context, addr string, request wire.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, linkCall)
	defer cancel()
	id, err := f.reach(ctx, addr)
	if err != nil {
		return nil, err
	}
	return f.call(ctx, id, request)
}

// reach connects to the peer at an address.
func (f *linkFetch) reach(ctx context.Context, addr string) (wire.PeerID, error) {
	id, err := address.PeerIDOf(addr)
	if err != nil {
		return id, err
	}
	if id == f.n.self {
		return id, errors.New("that is this node")
	}
	return f.n.host.Dial(ctx, addr)
}

// call asks a peer that is connected.
func (f *linkFetch) call(ctx context.Context, id wire.PeerID, request wire.Request) ([]byte, error) {
	raw, err := f.n.host.Call(ctx, id, request.Encode(), request.Kind.MaxResponse())
	if err != nil {
		return nil, err
	}
	return wire.OpenResponse(raw, request.Kind.MaxResponse())
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

package entry

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/tensor/codec"
)

// firstAtOnce is how many chunks are asked for at a time: one is a quarter of a megabyte.
const firstAtOnce = 4

// List fetches the list of the chunks of initial values.
func (p *Peers) List(ctx context.Context, g genesis.Genesis) (list [][]byte, err error) {
	for i, d := range g.FirstDigests() {
		b, err := p.chunk(ctx, d, g.ListSize(i))
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	return list, nil
}

// Fill fetches what is missing, several chunks at a time.
func (p *Peers) Fill(ctx context.Context, part *genesis.FirstPart) error {
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
				b, err := p.chunk(ctx, part.Digest(i), part.Size(i))
				if err == nil {
					err = part.Put(i, b)
				}
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				done++
				p.stage(fmt.Sprintf("initial values: %d of %d chunks", done, part.Chunks()))
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
func (p *Peers) chunk(ctx context.Context, d wire.Digest, size int) (chunk []byte, err error) {
	err = p.any(ctx, func(ctx context.Context, addr string) error {
		chunk, err = p.askChunk(ctx, addr, d, size)
		if err == nil && wire.Sum(chunk) != d {
			err = errors.New("it does not have this part of the initial values")
		}
		return err
	})
	return chunk, err
}

// askChunk asks the peer at an address for a chunk.
func (p *Peers) askChunk(ctx context.Context, addr string, d wire.Digest, size int) ([]byte, error) {
	b, err := p.ask(ctx, addr, wire.Request{Kind: wire.GetChunk, Digest: d})
	if err != nil {
		return nil, err
	}
	return codec.Unpack(b, size)
}

package outsider

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/wire"
)

// outsider attacks the nodes of a run.
type outsider struct {
	knowledge
	topic string
	pool  [][]byte        // messages that nobody admitted the authors of
	heard func() [][]byte // what honest nodes said
	did   deeds
}

func newOutsider(k knowledge, heard func() [][]byte) *outsider {
	return &outsider{knowledge: k, topic: topicOf(k.run), pool: k.messages(), heard: heard}
}

// topicOf is where a run gossips.
func topicOf(run wire.RunID) string { return "/atoll/" + hex.EncodeToString(run[:]) + "/1" }

// peerIDOf is a key's name in libp2p.
func peerIDOf(key ed25519.PrivateKey) peer.ID {
	k, err := crypto.UnmarshalEd25519PrivateKey(key)
	if err == nil {
		var id peer.ID
		if id, err = peer.IDFromPublicKey(k.GetPublic()); err == nil {
			return id
		}
	}
	panic("outsider: " + err.Error()) // keyOf makes keys of the right length
}

// deeds count what the outsider came to do.
type deeds struct {
	sockets, lines, streams, messages, bytes, refused, admitted, failed atomic.Int64

	mu       sync.Mutex
	verdicts []string
}

// mostVerdicts bounds the reasons that are kept: there are few, once names are taken out.
const mostVerdicts = 32

var names = regexp.MustCompile(`[0-9a-f]{8,}`)

// record keeps a reason for which a node refused the outsider.
func (d *deeds) record(verdict string) {
	verdict = names.ReplaceAllString(verdict, "ID")
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.verdicts, verdict) && len(d.verdicts) < mostVerdicts {
		d.verdicts = append(d.verdicts, verdict)
	}
}

// attack does it to all targets until ctx ends, and returns when all has ended.
func (o *outsider) attack(ctx context.Context, a attack, targets []target) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for i, t := range targets {
		for lane := range a.lanes {
			wg.Go(func() { o.lane(ctx, a, t, i*a.lanes+lane, len(targets)*a.lanes) })
		}
	}
}

// lane tries again and again. Its tries have the numbers first, first + step and so on, so that all keys differ. Lanes begin
// one after the other within the time of a try.
func (o *outsider) lane(ctx context.Context, a attack, t target, first, step int) {
	if sleep(ctx, a.every*time.Duration(first)/time.Duration(step)) != nil {
		return
	}
	tick := time.NewTicker(a.every)
	defer tick.Stop()
	for n := first; ; n += step {
		if err := a.try(ctx, o, t, n); err != nil && ctx.Err() == nil {
			o.did.failed.Add(1) // the node has had enough, which is its right
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// sleep waits, or returns why it did not.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package replica

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"atoll/optimizer/outer"
)

// maxBaseBytes is the memory that kept bases may take before those that are on
// disk as well are dropped: enough for small models to refold without a read.
const maxBaseBytes = 256 << 20

// bases are the kept tips, in memory and on disk. A base goes to disk if the policy
// says so of its round, to replace a base of that round, or when memory is over its budget. Memory holds the newest
// one of each fragment, as the machine has that anyway, and others within the budget.
type bases struct {
	ledger  Ledger
	policy  Policy
	genesis func() []*outer.Tip
	check   func(what string, err error)
	budget  int64 // of bytes
	epoch   int   // counts installs; belongs to the folds

	mu       sync.Mutex
	held     map[baseKey]*outer.Tip
	disk     map[baseKey]bool
	outlived map[int]uint32 // by fragment: a base that stays on disk only until a newer one is there
	bytes    int64
}

type baseKey struct {
	fragment int
	round    uint32
}

func newBases(ledger Ledger, policy Policy, genesis func() []*outer.Tip, check func(string, error), fragments int) (*bases, error) {
	b := &bases{
		ledger: ledger, policy: policy, genesis: genesis, check: check, budget: maxBaseBytes,
		held: map[baseKey]*outer.Tip{}, disk: map[baseKey]bool{}, outlived: map[int]uint32{},
	}
	for fragment := range fragments {
		rounds, err := ledger.Bases(fragment)
		if err != nil {
			return nil, err
		}
		for _, round := range rounds {
			b.disk[baseKey{fragment, round}] = true
		}
	}
	return b, nil
}

// put keeps a tip as a base: in memory only if the disk does not take it.
func (b *bases) put(fragment int, tip *outer.Tip) {
	k := baseKey{fragment, tip.Round}
	if k.round%b.policy.BaseEvery == b.policy.BaseAt || b.onDisk(k) {
		b.check("keep base", b.write(k, tip))
	}
	b.keep(fragment, tip)
	b.putAway(fragment)
}

// putAway writes bases of a fragment to disk, the oldest first, until memory is within its budget: all but the newest.
func (b *bases) putAway(fragment int) {
	for _, round := range b.older(fragment) {
		k := baseKey{fragment, round}
		b.mu.Lock()
		tip, held := b.held[k]
		full := b.bytes > b.budget
		b.mu.Unlock()
		if !full || !held {
			continue
		}
		b.check("keep base", b.write(k, tip))
		b.mu.Lock()
		b.shrink(fragment)
		b.mu.Unlock()
	}
}

// older are the rounds of a fragment's bases in memory but the newest, ascending.
func (b *bases) older(fragment int) (rounds []uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.olderHeld(fragment)
}

// olderHeld is older, under mu.
func (b *bases) olderHeld(fragment int) (rounds []uint32) {
	for k := range b.held {
		if k.fragment == fragment {
			rounds = append(rounds, k.round)
		}
	}
	slices.Sort(rounds)
	return rounds[:max(len(rounds)-1, 0)]
}

// keep keeps a tip in memory.
func (b *bases) keep(fragment int, tip *outer.Tip) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := baseKey{fragment, tip.Round}
	b.forget(k)
	b.held[k] = tip
	b.bytes += baseBytes(tip)
	b.shrink(fragment)
}

// write keeps a tip on disk, and drops what stayed there only because there was nothing
// newer. What was there for that round is no longer the tip, so it goes even where the
// new one is not taken.
func (b *bases) write(k baseKey, tip *outer.Tip) error {
	if err := b.ledger.PutBase(k.fragment, tip); err != nil {
		return errors.Join(fmt.Errorf("keep base of fragment %d round %d: %w", k.fragment, k.round, err), b.dropWritten(k))
	}
	b.mu.Lock()
	b.disk[k] = true
	old, outlived := b.outlived[k.fragment]
	if old <= k.round { // the one of this round is of use again
		delete(b.outlived, k.fragment)
	}
	b.mu.Unlock()
	if !outlived || old >= k.round {
		return nil
	}
	return b.dropWritten(baseKey{k.fragment, old})
}

func (b *bases) onDisk(k baseKey) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.disk[k]
}

// restart holds the tips that were installed, which the ledger has as the only
// bases, and forgets every other.
func (b *bases) restart(installed []*outer.Tip) {
	b.mu.Lock()
	clear(b.held)
	clear(b.disk)
	clear(b.outlived)
	b.bytes = 0
	for p, tip := range installed {
		b.disk[baseKey{p, tip.Round}] = true
	}
	b.mu.Unlock()
	for p, tip := range installed {
		b.keep(p, tip)
	}
}

func baseBytes(t *outer.Tip) int64 { return int64(4 * (len(t.Global) + len(t.Momentum) + len(t.Ref))) }

// forget drops a base from memory, under mu.
func (b *bases) forget(k baseKey) {
	if old, ok := b.held[k]; ok {
		b.bytes -= baseBytes(old)
		delete(b.held, k)
	}
}

// shrink drops the oldest on-disk bases of a fragment while over budget, but the newest of all, under mu.
func (b *bases) shrink(fragment int) {
	for _, round := range b.olderHeld(fragment) {
		if k := (baseKey{fragment, round}); b.bytes > b.budget && b.disk[k] {
			b.forget(k)
		}
	}
}

// get returns a kept base, from memory or disk. One in memory that is not what its
// checksum says is forgotten there and an error: the next call reads it from the
// disk.
func (b *bases) get(fragment int, round uint32) (*outer.Tip, error) {
	k := baseKey{fragment, round}
	b.mu.Lock()
	tip, held := b.held[k]
	b.mu.Unlock()
	switch {
	case held && (b.policy.TrustMemory || tip.Sound()):
		return tip, nil
	case held:
		b.mu.Lock()
		b.forget(k)
		b.mu.Unlock()
		return nil, &lostBase{fragment, round, outer.ErrDamaged}
	}
	tip, err := b.ledger.Base(fragment, round)
	switch {
	case err == nil:
		return tip, nil
	case round != 0:
		return nil, &lostBase{fragment, round, err}
	}
	tip = b.genesis()[fragment] // made anew, for all fragments: a disk may have had no room for it
	b.keep(fragment, tip)
	return tip, nil
}

// release forgets a base that is no longer needed; tip is the newest round. The
// newest base on disk stays there until a newer one is: a disk that takes none must
// not leave a restart without any. One above the tip is of rounds that are no longer
// closed.
func (b *bases) release(fragment int, round, tip uint32) error {
	k := baseKey{fragment, round}
	b.mu.Lock()
	newest := b.disk[k] && round <= tip
	for other := range b.disk {
		newest = newest && (other.fragment != fragment || other.round <= round || other.round > tip)
	}
	if newest {
		b.forget(k)
		b.outlived[fragment] = round
	}
	b.mu.Unlock()
	if newest {
		return nil
	}
	return b.drop(fragment, round)
}

// drop forgets a base everywhere.
func (b *bases) drop(fragment int, round uint32) error {
	k := baseKey{fragment, round}
	b.mu.Lock()
	b.forget(k)
	b.mu.Unlock()
	return b.dropWritten(k)
}

// dropWritten forgets a base on disk.
func (b *bases) dropWritten(k baseKey) error {
	b.mu.Lock()
	written := b.disk[k]
	delete(b.disk, k)
	b.mu.Unlock()
	if !written {
		return nil
	}
	return b.ledger.DropBase(k.fragment, k.round)
}

// KeptBases is how many bases of a fragment there are, in memory or on disk.
func (r *Replica) KeptBases(fragment int) (n int) {
	b := r.bases
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range b.held {
		if k.fragment == fragment {
			n++
		}
	}
	for k := range b.disk {
		if _, held := b.held[k]; !held && k.fragment == fragment {
			n++
		}
	}
	return n
}

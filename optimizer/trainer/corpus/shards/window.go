package shards

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// This file says which tokens a row of a batch has. Learners in other languages follow the
// same rules, so they are simple: hashes of SHA-256 and whole numbers.
//
// Each author reads the shards in an order of its own, again and again, each time in another
// order. At a step it reads from a window of them: so many shards of its order, which move
// on by one every so many steps. A row begins at any place of the window with the same
// chance.

// Window is how much of a corpus an author reads from at a step.
type Window struct {
	Shards int   // in it; all of the corpus, if it has no more
	Steps  int64 // after which it moves on by one shard
}

// Domains separate the hashes from every other use of the same inputs.
const (
	rowDomain   = "atoll row 1"
	orderDomain = "atoll order 1"
)

// draws are what an author reads of shards of these lengths, in rows of context+1 tokens.
type draws struct {
	seed    uint64
	author  [32]byte
	window  Window
	context int
	usable  []int // shards that have a row
	places  []int64
}

// newDraws leaves out shards that are shorter than a row.
func newDraws(shards []Shard, w Window, seed uint64, author [32]byte, context int) *draws {
	d := &draws{seed: seed, author: author, window: w, context: context}
	for i, s := range shards {
		if n := s.Tokens - int64(context); n > 0 {
			d.usable = append(d.usable, i)
			d.places = append(d.places, n)
		}
	}
	return d
}

// at returns the window of a step: places in usable.
func (d *draws) at(step int64) []int {
	n := len(d.usable)
	if n <= d.window.Shards {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all
	}
	window := make([]int, d.window.Shards)
	for i := range window {
		window[i] = d.order(uint64(step/d.window.Steps) + uint64(i))
	}
	return window
}

// order returns which shard an author reads as its p-th: a permutation of all, again and
// again, each time another one.
func (d *draws) order(p uint64) int {
	n := uint64(len(d.usable))
	cycle, x := p/n, p%n
	half := (bits.Len64(n-1) + 1) / 2
	// A Feistel network permutes numbers of twice half the bits. Those that are too large are
	// permuted again until they are not.
	for x = d.feistel(cycle, x, half); x >= n; {
		x = d.feistel(cycle, x, half)
	}
	return int(x)
}

// feistelRounds is as many as a random permutation needs (Luby and Rackoff).
const feistelRounds = 4

func (d *draws) feistel(cycle, x uint64, half int) uint64 {
	mask := uint64(1)<<half - 1
	left, right := x>>half, x&mask
	for round := range uint64(feistelRounds) {
		left, right = right, left^d.hash(orderDomain, cycle, round, right)&mask
	}
	return left<<half | right
}

// row returns the place in usable of the shard that a row is in, and the token that it
// begins with. The window is that of the step.
func (d *draws) row(window []int, step int64, row int) (shard int, start int64) {
	total := uint64(0)
	for _, u := range window {
		total += uint64(d.places[u])
	}
	place, _ := bits.Mul64(d.hash(rowDomain, uint64(step), uint64(row)), total)
	for _, u := range window {
		if n := uint64(d.places[u]); place >= n {
			place -= n
			continue
		}
		return u, int64(place)
	}
	panic("shards: a place beyond the window")
}

// hash is the first 8 bytes, as a big-endian number, of the SHA-256 of a domain, the seed,
// the author and numbers of 8 bytes.
func (d *draws) hash(domain string, numbers ...uint64) uint64 {
	b := make([]byte, 0, 96)
	b = append(b, domain...)
	b = binary.BigEndian.AppendUint64(b, d.seed)
	b = append(b, d.author[:]...)
	for _, n := range numbers {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}

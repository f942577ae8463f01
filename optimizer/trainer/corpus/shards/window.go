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
//
// In a mixture each component has an order and a window of its own. The component of a row is
// drawn by weight. Its window has its part of the shards, one at least, and moves as much
// slower as fewer rows come from it.

// Window is how much of a corpus an author reads from at a step.
type Window struct {
	Shards int   // in it; all of the corpus, if it has no more
	Steps  int64 // after which it moves on by one shard
}

// Domains separate the hashes from every other use of the same inputs.
const (
	rowDomain       = "atoll row 1"
	orderDomain     = "atoll order 1"
	componentDomain = "atoll component 1"
)

// draws are what an author reads of a corpus, in rows of context+1 tokens.
type draws struct {
	seed       uint64
	author     [32]byte
	context    int
	components []component
	total      uint64 // of their weights
}

// component is what is drawn from of one corpus.
type component struct {
	usable []int   // places in the manifest's Shards of those that have a row
	places []int64 // at which a row may begin in each of them
	size   int     // shards in the window
	weight uint64
	slow   uint64   // the window moves on by weight/slow shards a step
	salt   []uint64 // keeps its order apart from those of the other components
}

// componentsOf is how the components of a corpus are drawn from, without their shards.
func componentsOf(m *Manifest, w Window) (list []component) {
	parts, total := m.Parts(), uint64(0)
	for _, p := range parts {
		total += p.Weight
	}
	for i, p := range parts {
		c := component{weight: p.Weight, slow: uint64(w.Steps) * total, size: windowOf(w.Shards, p.Weight, total)}
		if m.Mixed() {
			c.salt = []uint64{uint64(i)}
		}
		list = append(list, c)
	}
	return list
}

// newDraws leaves out shards that are shorter than a row.
func newDraws(m *Manifest, w Window, seed uint64, author [32]byte, context int) *draws {
	d := &draws{seed: seed, author: author, context: context, components: componentsOf(m, w)}
	at := 0
	for i, p := range m.Parts() {
		c := &d.components[i]
		for _, s := range p.Shards {
			if n := s.Tokens - int64(context); n > 0 {
				c.usable, c.places = append(c.usable, at), append(c.places, n)
			}
			at++
		}
		d.total += c.weight
	}
	return d
}

// windowOf is a component's part of a window, rounded down, but one shard at least.
func windowOf(shards int, weight, total uint64) int {
	return max(1, int(uint64(shards)*weight/total))
}

// position is by how many shards the window of a component has moved at a step.
func (c component) position(step int64) uint64 {
	hi, lo := bits.Mul64(uint64(step), c.weight)
	q, _ := bits.Div64(hi, lo, c.slow) // hi < weight <= slow
	return q
}

// at returns the windows of a step: for each component, places in its usable.
func (d *draws) at(step int64) [][]int { return d.ahead(step, 0) }

// ahead returns the windows that come so many windows after those of a step.
func (d *draws) ahead(step int64, windows int) [][]int {
	list := make([][]int, len(d.components))
	for i, c := range d.components {
		list[i] = d.window(c, c.position(step)+uint64(windows*c.size))
	}
	return list
}

func (d *draws) window(c component, position uint64) []int {
	n := min(c.size, len(c.usable))
	window := make([]int, n)
	for i := range window {
		if window[i] = i; n < len(c.usable) {
			window[i] = d.order(c, position+uint64(i))
		}
	}
	return window
}

// order returns which shard of a component an author reads as its p-th: a permutation of all,
// again and again, each time another one.
func (d *draws) order(c component, p uint64) int {
	n := uint64(len(c.usable))
	cycle, x := p/n, p%n
	half := (bits.Len64(n-1) + 1) / 2
	// A Feistel network permutes numbers of twice half the bits. Those that are too large are
	// permuted again until they are not.
	for x = d.feistel(c, cycle, x, half); x >= n; {
		x = d.feistel(c, cycle, x, half)
	}
	return int(x)
}

// feistelRounds is as many as a random permutation needs (Luby and Rackoff).
const feistelRounds = 4

func (d *draws) feistel(c component, cycle, x uint64, half int) uint64 {
	mask := uint64(1)<<half - 1
	left, right := x>>half, x&mask
	for round := range uint64(feistelRounds) {
		left, right = right, left^d.hash(orderDomain, append([]uint64{cycle, round, right}, c.salt...)...)&mask
	}
	return left<<half | right
}

// row returns the place in the manifest's Shards of the shard that a row is in, and the token
// that it begins with. The windows are those of the step.
func (d *draws) row(windows [][]int, step int64, row int) (shard int, start int64) {
	i := d.componentOf(step, row)
	c, total := d.components[i], uint64(0)
	for _, u := range windows[i] {
		total += uint64(c.places[u])
	}
	place, _ := bits.Mul64(d.hash(rowDomain, uint64(step), uint64(row)), total)
	for _, u := range windows[i] {
		if n := uint64(c.places[u]); place >= n {
			place -= n
			continue
		}
		return c.usable[u], int64(place)
	}
	panic("shards: a place beyond the window")
}

// componentOf draws the component of a row.
func (d *draws) componentOf(step int64, row int) int {
	if len(d.components) == 1 {
		return 0
	}
	place, _ := bits.Mul64(d.hash(componentDomain, uint64(step), uint64(row)), d.total)
	for i, c := range d.components {
		if place < c.weight {
			return i
		}
		place -= c.weight
	}
	panic("shards: a place beyond the weights")
}

// usable tells whether every component has a shard with a row.
func (d *draws) usable() bool {
	for _, c := range d.components {
		if len(c.usable) == 0 {
			return false
		}
	}
	return true
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

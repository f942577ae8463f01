package token

import "math/bits"

// pairTable has the merge of each pair that has one. It is a hash table with open addressing: encoders look into it
// for every byte of a word that they have not met, and Go's map takes three times as long.
type pairTable struct {
	slots []pairSlot // a power of two of them, at most half of them in use
	shift int
}

// pairSlot is free where its pair is not one.
type pairSlot struct {
	pair
	merge
}

// free is the left one of a slot that is not in use: no id.
const free = -1

func newPairTable(merges map[pair]merge) *pairTable {
	size := bits.Len(uint(max(2*len(merges), 2) - 1))
	t := &pairTable{slots: make([]pairSlot, 1<<size), shift: 64 - size}
	for i := range t.slots {
		t.slots[i].left = free
	}
	for p, m := range merges {
		at := t.place(p)
		for t.slots[at].left != free {
			at = (at + 1) & (len(t.slots) - 1)
		}
		t.slots[at] = pairSlot{p, m}
	}
	return t
}

// place is where the search for a pair begins: the upper bits of a product, which depend on all of its bits
// (Fibonacci hashing).
func (t *pairTable) place(p pair) int {
	return int((uint64(uint32(p.left))<<32 | uint64(uint32(p.right))) * 0x9e3779b97f4a7c15 >> t.shift)
}

// find returns the merge of a pair of ids.
func (t *pairTable) find(p pair) (merge, bool) {
	for at := t.place(p); ; at = (at + 1) & (len(t.slots) - 1) {
		s := &t.slots[at]
		if s.pair == p {
			return s.merge, true
		}
		if s.left == free {
			return merge{}, false
		}
	}
}

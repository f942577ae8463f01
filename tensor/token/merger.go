package token

// merger merges the tokens of one word. Its fields are kept between words, so that a word
// costs no memory.
type merger struct {
	symbols []symbol
	queue   []uint64 // a heap of rank and place of the left one of a pair
}

// symbol is a token in a list of neighbours.
type symbol struct {
	id, before, after int32 // before and after are places, or -1
	rank, merged      int32 // of the pair that it begins: the merge's, or none
}

// noRank is that of a pair without a merge.
const noRank = -1

// add puts a token at the end of a word.
func add(word []symbol, id int32) []symbol {
	at := int32(len(word))
	return append(word, symbol{id: id, before: at - 1, after: at + 1})
}

// append adds the tokens of a word of at least one to dst. It merges the pair of the least
// rank, and of those the leftmost, until no pair has a merge.
func (m *merger) append(dst []int32, word []symbol, merges *pairTable) []int32 {
	m.symbols, m.queue = word, m.queue[:0]
	m.symbols[len(m.symbols)-1].after = -1
	for at := range int32(len(m.symbols)) {
		m.propose(at, merges)
	}
	for len(m.queue) > 0 {
		key := m.pop()
		// A pair whose tokens have changed since has another rank.
		if at := int32(uint32(key)); m.symbols[at].rank == int32(key>>32) {
			m.apply(at, merges)
		}
	}
	for at := int32(0); at >= 0; at = m.symbols[at].after {
		dst = append(dst, m.symbols[at].id)
	}
	return dst
}

// propose puts the pair whose left one is at a place into the queue, if it has a merge.
func (m *merger) propose(at int32, merges *pairTable) {
	left := &m.symbols[at]
	left.rank = noRank
	if left.after < 0 {
		return
	}
	if found, ok := merges.find(pair{left.id, m.symbols[left.after].id}); ok {
		left.rank, left.merged = found.rank, found.id
		m.push(uint64(found.rank)<<32 | uint64(uint32(at)))
	}
}

// apply merges the pair whose left one is at a place.
func (m *merger) apply(at int32, merges *pairTable) {
	left := &m.symbols[at]
	right := &m.symbols[left.after]
	left.id, left.after = left.merged, right.after
	right.rank = noRank
	if left.after >= 0 {
		m.symbols[left.after].before = at
	}
	m.propose(at, merges)
	if left.before >= 0 {
		m.propose(left.before, merges)
	}
}

func (m *merger) push(key uint64) {
	m.queue = append(m.queue, key)
	q := m.queue
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if q[up] <= q[i] {
			break
		}
		q[up], q[i] = q[i], q[up]
		i = up
	}
}

func (m *merger) pop() uint64 {
	q := m.queue
	top := q[0]
	q[0] = q[len(q)-1]
	q = q[:len(q)-1]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q); child++ {
			if q[child] < q[least] {
				least = child
			}
		}
		if least == i {
			break
		}
		q[least], q[i] = q[i], q[least]
		i = least
	}
	m.queue = q
	return top
}

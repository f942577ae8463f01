package corpus

import "math"

// WittenBell trains an interpolated Witten-Bell model of order 2 on the bytes
// of train. It returns the bits per byte that the model needs for held: the
// baseline that a trained model has to beat. With N(h) the number of times that
// the context h was followed by anything and T(h) by how many different bytes,
//
//	P(b|h) = (count(hb) + T(h) P(b|h')) / (N(h) + T(h))
//
// where h' is h without its oldest byte, the contexts are the last 2, 1 and 0
// bytes, and below the empty one stands the uniform 1/256. A context that was
// never seen leaves the word to the next shorter one. The first bytes of held
// have only the shorter contexts.
//
// Source: Bell, Cleary and Witten, Text Compression (1990), method C; in this
// interpolated form Chen and Goodman, An Empirical Study of Smoothing
// Techniques for Language Modeling (TR-10-98, Harvard, 1998), section 2.5.
//
// It returns NaN where held is empty.
func WittenBell(train, held []byte) float64 {
	return countContexts(train).bits(held, 0) / float64(len(held))
}

// WittenBellOf is WittenBell for windows of held-out text, as Windows makes them: the first byte of a window is
// context only. It returns NaN where no window has more.
func WittenBellOf(train []byte, windows [][]byte) float64 {
	model, total, targets := countContexts(train), 0.0, 0
	for _, w := range windows {
		total += model.bits(w, 1)
		targets += max(len(w)-1, 0)
	}
	return total / float64(targets)
}

// bits is what the bytes of a text from a place on take together.
func (c *contexts) bits(text []byte, from int) (total float64) {
	for i := from; i < len(text); i++ {
		p := 1.0 / 256
		for order := 0; order <= min(i, maxOrder); order++ {
			p = c.context(text[i-order:i]).interpolate(text[i], p)
		}
		total -= math.Log2(p)
	}
	return total
}

// maxOrder is the longest context in bytes.
const maxOrder = 2

// successors counts the bytes that follow one context.
type successors struct {
	counts   [256]uint32
	total    uint32
	distinct uint32
}

func (s *successors) add(b byte) {
	if s.counts[b] == 0 {
		s.distinct++
	}
	s.counts[b]++
	s.total++
}

// interpolate returns P(b) in this context given its probability p in the next
// shorter one.
func (s *successors) interpolate(b byte, p float64) float64 {
	if s == nil {
		return p
	}
	t := float64(s.distinct)
	return (float64(s.counts[b]) + t*p) / (float64(s.total) + t)
}

// contexts holds the successors of each context that was seen, by order and by
// the context's bytes as a number.
type contexts [maxOrder + 1][]*successors

func countContexts(train []byte) *contexts {
	var c contexts
	for order := range c {
		c[order] = make([]*successors, 1<<(8*order))
	}
	for i, b := range train {
		for order := 0; order <= min(i, maxOrder); order++ {
			slot := &c[order][number(train[i-order:i])]
			if *slot == nil {
				*slot = new(successors)
			}
			(*slot).add(b)
		}
	}
	return &c
}

// context returns the successors of h, nil if h was never seen.
func (c *contexts) context(h []byte) *successors { return c[len(h)][number(h)] }

func number(h []byte) int {
	n := 0
	for _, b := range h {
		n = n<<8 | int(b)
	}
	return n
}

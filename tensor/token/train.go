package token

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
)

// EndName is the end token of tokenizers that Trainer makes.
const EndName = "<|endoftext|>"

// MinSize is the smallest vocabulary: the end token and the bytes.
const MinSize = 1 + len(byteText)

const (
	// maxWords bounds the different words that a Trainer counts, and with them its memory,
	// to about 1 GB. Beyond it, it forgets the rarest.
	maxWords = 4 << 20
	// maxWordBytes is the longest word that is counted: longer ones are data that no merge
	// should be spent on, and come once.
	maxWordBytes = 64
)

// Trainer makes a byte-level BPE of the family Llama 3 from text. The same texts in the same
// order give the same tokenizer. It merges the most frequent pair of neighbours in all
// words, of several the one of the lowest ids, until the vocabulary has its size.
type Trainer struct {
	// Told is called by Train now and then with the tokens that there are, of so many; nil = it is not.
	Told func(done, all int)

	counts map[string]int64
	size   int
	limit  int // of counts
}

// tellEvery is how many tokens are between two that Told hears of: they take a moment together.
const tellEvery = 16

// NewTrainer returns a trainer of a tokenizer of at most so many ids.
func NewTrainer(size int) (*Trainer, error) {
	if size < MinSize || size > maxSize {
		return nil, fmt.Errorf("a vocabulary of %d tokens: use %d, the bytes and an end token, to %d", size, MinSize, maxSize)
	}
	return &Trainer{counts: map[string]int64{}, size: size, limit: maxWords}, nil
}

// Add counts the words of a text.
func (t *Trainer) Add(text []byte) {
	c := runeClasses()
	for len(text) > 0 {
		n := splitLlama3(c, text)
		if n <= maxWordBytes {
			t.counts[string(text[:n])]++
		}
		text = text[n:]
	}
	for floor := int64(1); len(t.counts) > t.limit; floor *= 2 {
		for word, n := range t.counts {
			if n <= floor {
				delete(t.counts, word)
			}
		}
	}
}

// Train returns the tokenizer. It has fewer ids than asked for where the text has no more
// pairs.
func (t *Trainer) Train() *Vocabulary {
	v := newVocabulary()
	words := newPairs(v, t.counts)
	for len(v.Tokens) < t.size {
		p, ok := words.best()
		if !ok {
			break
		}
		words.merge(p, v.merge(p))
		if n := len(v.Tokens); t.Told != nil && n%tellEvery == 0 {
			t.Told(n, t.size)
		}
	}
	return v
}

// Vocabulary is what a Trainer makes: the text of tokenizer.json in parts.
type Vocabulary struct {
	Tokens []string // by id, in the alphabet of tokenizer.json; the first is the end token
	Merges [][2]string
	ids    map[string]int32
}

// newVocabulary has the end token and the bytes, in the order of the runes that stand for
// them: the judge's trainer has the same one.
func newVocabulary() *Vocabulary {
	v := &Vocabulary{ids: map[string]int32{}}
	v.add(EndName)
	runes := slices.Clone(alphabet[:])
	slices.Sort(runes)
	for _, r := range runes {
		v.add(string(r))
	}
	return v
}

func (v *Vocabulary) add(token string) int32 {
	if id, ok := v.ids[token]; ok {
		return id
	}
	id := int32(len(v.Tokens))
	v.ids[token] = id
	v.Tokens = append(v.Tokens, token)
	return id
}

func (v *Vocabulary) merge(p pair) int32 {
	left, right := v.Tokens[p.left], v.Tokens[p.right]
	v.Merges = append(v.Merges, [2]string{left, right})
	return v.add(left + right)
}

// pairs counts the neighbours in words, and keeps counting while they merge.
type pairs struct {
	words []countedWord
	info  map[pair]*pairInfo
	queue pairQueue
}

type countedWord struct {
	symbols []int32
	count   int64
}

type pairInfo struct {
	count int64
	words []int32 // in which it is or was; some more than once
}

func newPairs(v *Vocabulary, counts map[string]int64) *pairs {
	p := &pairs{info: map[pair]*pairInfo{}}
	for word, n := range counts {
		symbols := make([]int32, len(word))
		for i := range len(word) {
			symbols[i] = v.ids[string(alphabet[word[i]])]
		}
		at := int32(len(p.words))
		p.words = append(p.words, countedWord{symbols, n})
		p.count(at, 1)
	}
	for q, info := range p.info {
		p.queue = append(p.queue, queued{q, info.count})
	}
	heap.Init(&p.queue)
	return p
}

// count adds the pairs of a word so many times.
func (p *pairs) count(at int32, times int64) {
	word := p.words[at]
	for i := range len(word.symbols) - 1 {
		q := pair{word.symbols[i], word.symbols[i+1]}
		info := p.info[q]
		if info == nil {
			info = &pairInfo{}
			p.info[q] = info
		}
		info.count += times * word.count
		if times > 0 && (len(info.words) == 0 || info.words[len(info.words)-1] != at) {
			info.words = append(info.words, at)
		}
	}
}

// best returns the most frequent pair. An entry of the queue may be older than its count:
// then it goes back with the new one.
func (p *pairs) best() (pair, bool) {
	for len(p.queue) > 0 {
		top := p.queue[0]
		info := p.info[top.pair]
		switch {
		case info == nil || info.count <= 0:
			heap.Pop(&p.queue)
		case info.count != top.count:
			p.queue[0].count = info.count
			heap.Fix(&p.queue, 0)
		default:
			return top.pair, true
		}
	}
	return pair{}, false
}

// merge makes one symbol of a pair in all words that have it.
func (p *pairs) merge(q pair, id int32) {
	changed := map[pair]bool{}
	for _, at := range p.info[q].words {
		word := &p.words[at]
		if !hasPair(word.symbols, q) {
			continue
		}
		p.count(at, -1)
		word.symbols = mergeIn(word.symbols, q, id)
		p.count(at, 1)
		for i := range len(word.symbols) - 1 {
			if word.symbols[i] == id || word.symbols[i+1] == id {
				changed[pair{word.symbols[i], word.symbols[i+1]}] = true
			}
		}
	}
	delete(p.info, q)
	for c := range changed {
		heap.Push(&p.queue, queued{c, p.info[c].count})
	}
}

func hasPair(symbols []int32, q pair) bool {
	for i := range len(symbols) - 1 {
		if symbols[i] == q.left && symbols[i+1] == q.right {
			return true
		}
	}
	return false
}

// mergeIn replaces the pairs from left to right, in place.
func mergeIn(symbols []int32, q pair, id int32) []int32 {
	out := symbols[:0]
	for i := 0; i < len(symbols); i++ {
		if i+1 < len(symbols) && symbols[i] == q.left && symbols[i+1] == q.right {
			out = append(out, id)
			i++
			continue
		}
		out = append(out, symbols[i])
	}
	return out
}

// queued is a pair with its count when it was queued.
type queued struct {
	pair  pair
	count int64
}

// pairQueue has the most frequent pair first, of several the one of the lowest ids: a total
// order, so that the order in which pairs are pushed does not matter.
type pairQueue []queued

func (q pairQueue) Len() int { return len(q) }
func (q pairQueue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[j].count, q[i].count),
		cmp.Compare(q[i].pair.left, q[j].pair.left),
		cmp.Compare(q[i].pair.right, q[j].pair.right)) < 0
}
func (q pairQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *pairQueue) Push(x any)   { *q = append(*q, x.(queued)) }
func (q *pairQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

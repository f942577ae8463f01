package token

// matcher finds added tokens in a text: the leftmost, and of those that begin there the
// longest.
type matcher struct {
	first [256]bool // bytes that a token begins with
	root  matchNode
}

type matchNode struct {
	next map[byte]*matchNode
	id   int32 // -1: no token ends here
}

func newMatcher() matcher { return matcher{root: matchNode{id: -1}} }

// add takes in a token that is not empty.
func (m *matcher) add(text string, id int32) {
	m.first[text[0]] = true
	node := &m.root
	for _, b := range []byte(text) {
		if node.next == nil {
			node.next = map[byte]*matchNode{}
		}
		if node.next[b] == nil {
			node.next[b] = &matchNode{id: -1}
		}
		node = node.next[b]
	}
	node.id = id
}

// find returns where the first token is, its length and its id; without one, the length
// of the text and 0.
func (m *matcher) find(text []byte) (at, length int, id int32) {
	if m.root.next == nil {
		return len(text), 0, 0
	}
	for at, b := range text {
		if !m.first[b] {
			continue
		}
		if length, id = m.longest(text[at:]); length > 0 {
			return at, length, id
		}
	}
	return len(text), 0, 0
}

func (m *matcher) longest(text []byte) (length int, id int32) {
	node := &m.root
	for i, b := range text {
		if node = node.next[b]; node == nil {
			break
		}
		if node.id >= 0 {
			length, id = i+1, node.id
		}
	}
	return length, id
}

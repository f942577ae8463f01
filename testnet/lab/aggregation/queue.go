package aggregation

// kind is what an event is.
type kind uint8

const (
	published kind = iota // a learner's own delta is there
	asked                 // others have heard that a node has an item, and ask for it
	free                  // an uplink has sent what it sent
	arrived               // an item is at a node
	merged                // an aggregator has a merged delta
)

// event happens to a node, and mostly to an item.
type event struct {
	at   float64
	seq  uint32 // of two at one moment the first that was planned comes first
	kind kind
	node uint16
	item int32
}

// queue is the events to come, as a binary heap.
type queue struct {
	events []event
	seq    uint32
}

func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

func (q *queue) push(e event) {
	e.seq = q.seq
	q.seq++
	q.events = append(q.events, e)
	i := len(q.events) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(q.events[parent]) {
			break
		}
		q.events[i], i = q.events[parent], parent
	}
	q.events[i] = e
}

// pop takes the next event of a queue that is not empty.
func (q *queue) pop() event {
	first, last := q.events[0], q.events[len(q.events)-1]
	q.events = q.events[:len(q.events)-1]
	n := len(q.events)
	if n == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && q.events[child+1].before(q.events[child]) {
			child++
		}
		if !q.events[child].before(last) {
			break
		}
		q.events[i], i = q.events[child], child
	}
	q.events[i] = last
	return first
}

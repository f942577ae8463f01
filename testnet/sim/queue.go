package sim

// event is one thing that will happen. It is a value in a slice, so that a world
// of a million events makes no garbage of them: the two kinds that are frequent,
// a hop of a gossip message and a timer of a node, need no closure.
type event struct {
	at   Time
	seq  uint64 // events of one moment happen in the order in which they were made
	kind eventKind
	life int // of to, when the event was made; for timers
	to   *Node
	from *Node    // of a hop
	msg  *message // of a hop
	do   func()   // of a call
}

type eventKind uint8

const (
	eventCall eventKind = iota // do
	eventHop                   // msg arrives at to, from from
	eventTick                  // of the machine of to
	eventStep                  // of the trainer of to
)

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// queue is a heap of events with four children to a node: flatter than a binary
// one, so fewer cache misses where it is large.
type queue struct {
	heap []event
	seq  uint64
}

const heapArity = 4

func (q *queue) push(e event) {
	q.seq++
	e.seq = q.seq
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		parent := (i - 1) / heapArity
		if !e.before(&q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = e
}

func (q *queue) pop() event {
	top := q.heap[0]
	last := len(q.heap) - 1
	e := q.heap[last]
	q.heap[last] = event{} // let go of what it points to
	q.heap = q.heap[:last]
	if last > 0 {
		q.sink(e)
	}
	return top
}

// sink puts e where the top was taken.
func (q *queue) sink(e event) {
	i, n := 0, len(q.heap)
	for {
		least, first := -1, heapArity*i+1
		for c := first; c < min(first+heapArity, n); c++ {
			if least < 0 || q.heap[c].before(&q.heap[least]) {
				least = c
			}
		}
		if least < 0 || !q.heap[least].before(&e) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = e
}

package sim

// event is one thing that will happen. It is a value in a slice, so a world of a
// million events makes no garbage of them. The two frequent kinds, a hop of a
// gossip message and a timer of a node, need no closure.
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
	eventCall   eventKind = iota // do
	eventHop                     // msg arrives at the downlink of to, from from
	eventTick                    // of the machine of to
	eventStep                    // of the trainer of to
	eventLanded                  // msg is through the downlink of to
)

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// queue holds the events to come. Events of the next wheelMs are in one list for
// each moment, in the order in which they were made. Later ones are in a heap.
// Nearly all are hops, which are near, so that a world of millions costs no more an
// event than a small one.
type queue struct {
	now  Time // of the last event taken; none is earlier
	idle Time // no near event is earlier than this
	near [wheelMs][]event
	read int // how many of the events of now were taken
	soon int // near events left
	far  []event
	seq  uint64
}

const (
	wheelMs   = 256 // more than nearly all hops take, and few enough to stay in the cache
	heapArity = 4   // children of a node of the heap: flatter than a binary one
)

// push takes an event that is not before the last one taken.
func (q *queue) push(e event) {
	q.seq++
	e.seq = q.seq
	if e.at >= q.now+wheelMs {
		q.rise(e)
		return
	}
	q.put(e)
}

func (q *queue) put(e event) {
	slot := &q.near[e.at%wheelMs]
	*slot = append(*slot, e)
	q.soon++
	q.idle = min(q.idle, e.at)
}

// next is when the first event happens; any is false if there is none.
func (q *queue) next() (at Time, any bool) {
	if q.soon == 0 {
		if len(q.far) == 0 {
			return 0, false
		}
		return q.far[0].at, true
	}
	for q.idle = max(q.idle, q.now); q.unread(q.idle) == 0; q.idle++ {
	}
	return q.idle, true
}

// unread is how many events of a near moment are left.
func (q *queue) unread(at Time) int {
	n := len(q.near[at%wheelMs])
	if at == q.now {
		n -= q.read
	}
	return n
}

// pop takes the first event; there must be one.
func (q *queue) pop() event {
	at, _ := q.next()
	if at != q.now {
		q.advance(at)
	}
	slot := &q.near[at%wheelMs]
	e := (*slot)[q.read]
	(*slot)[q.read] = event{} // let go of what it points to
	q.read++
	q.soon--
	if q.read == len(*slot) {
		*slot, q.read = (*slot)[:0], 0
	}
	return e
}

// advance comes to a moment before which nothing is left. What is near from there
// joins the lists at once, so before anything made later.
func (q *queue) advance(at Time) {
	q.now, q.idle, q.read = at, at, 0
	for len(q.far) > 0 && q.far[0].at < at+wheelMs {
		q.put(q.top())
	}
}

// rise puts an event into the heap.
func (q *queue) rise(e event) {
	q.far = append(q.far, e)
	i := len(q.far) - 1
	for i > 0 {
		parent := (i - 1) / heapArity
		if !e.before(&q.far[parent]) {
			break
		}
		q.far[i] = q.far[parent]
		i = parent
	}
	q.far[i] = e
}

// top takes the first event of the heap.
func (q *queue) top() event {
	top := q.far[0]
	last := len(q.far) - 1
	e := q.far[last]
	q.far[last] = event{}
	q.far = q.far[:last]
	if last > 0 {
		q.sink(e)
	}
	return top
}

// sink puts e where the top was taken.
func (q *queue) sink(e event) {
	i, n := 0, len(q.far)
	for {
		least, first := -1, heapArity*i+1
		for c := first; c < min(first+heapArity, n); c++ {
			if least < 0 || q.far[c].before(&q.far[least]) {
				least = c
			}
		}
		if least < 0 || !q.far[least].before(&e) {
			break
		}
		q.far[i] = q.far[least]
		i = least
	}
	q.far[i] = e
}

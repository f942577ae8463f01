package tensor

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// MaxThreads bounds a pool: beyond it, shared caches and memory bandwidth give
// nothing more to kernels of this size.
const MaxThreads = 256

// Pool runs loops on a fixed set of goroutines that are started once. A call
// offers its loop to idle workers and takes part in it itself, so calls may nest
// and may come from several goroutines at once: each makes progress alone.
type Pool struct {
	threads atomic.Int32
	offers  chan *loop

	mu      sync.Mutex // guards workers and closed
	workers int
	closed  bool
	running sync.WaitGroup
}

// loop is one Parallel call: indices are handed out by next, and left counts those
// not finished yet. refs counts who may still look at it, so that it can be used
// again once every offer has been seen.
type loop struct {
	f    func(i int)
	n    int64
	next atomic.Int64
	left atomic.Int64
	refs atomic.Int32
	done chan struct{}
}

var loops = sync.Pool{New: func() any { return &loop{done: make(chan struct{}, 1)} }}

// shared is the pool behind the package's functions; its workers live as long as
// the process.
var shared = NewPool(runtime.GOMAXPROCS(0))

// NewPool returns a pool that uses up to threads goroutines for a loop, the
// caller's among them. Workers start when they are first needed.
func NewPool(threads int) *Pool {
	p := &Pool{offers: make(chan *loop, MaxThreads)}
	p.SetThreads(threads)
	return p
}

// SetThreads sets how many goroutines the package's loops use, the caller's among
// them; 0 means one for each CPU that Go may use.
func SetThreads(n int) { shared.SetThreads(n) }

// Threads returns how many goroutines the package's loops use.
func Threads() int { return shared.Threads() }

// Parallel calls f once for each i in [0, n), in no order, on up to Threads()
// goroutines, and returns when all calls have returned. A panic of f on a worker
// ends the process.
func Parallel(n int, f func(i int)) { shared.Parallel(n, f) }

// SetThreads sets how many goroutines a later Parallel uses. See [SetThreads].
func (p *Pool) SetThreads(n int) {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	p.threads.Store(int32(min(n, MaxThreads)))
}

// Threads returns how many goroutines Parallel uses.
func (p *Pool) Threads() int { return int(p.threads.Load()) }

// Parallel runs f for each i in [0, n). See [Parallel].
func (p *Pool) Parallel(n int, f func(i int)) {
	helpers := min(p.Threads(), n) - 1
	if helpers <= 0 {
		for i := range n {
			f(i)
		}
		return
	}
	l := loops.Get().(*loop)
	l.f, l.n = f, int64(n)
	l.next.Store(0)
	l.left.Store(int64(n))
	l.refs.Store(1)
	p.offer(l, helpers)
	if !l.work() {
		watchFor(p, l.done)
		<-l.done
	}
	l.release()
}

// offersPerHelper bounds how many offers wait. Where workers are slow to wake, loops
// end before anyone has seen their offers, and each offer keeps its loop from being
// used again.
const offersPerHelper = 4

// offer puts l before up to helpers workers. When enough offers wait already, all are
// busy, and the caller does without.
func (p *Pool) offer(l *loop, helpers int) {
	p.start(helpers)
	for range min(helpers, offersPerHelper*helpers-len(p.offers)) {
		l.refs.Add(1)
		select {
		case p.offers <- l:
		default:
			l.refs.Add(-1)
			return
		}
	}
}

// start sees to it that at least n workers run.
func (p *Pool) start(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && p.workers < n {
		p.workers++
		p.running.Go(p.serve)
	}
}

// serve is one worker: it joins each loop that it is offered.
func (p *Pool) serve() {
	for l := range p.offers {
		if l.work() {
			l.done <- struct{}{}
		}
		l.release()
		watchFor(p, p.offers)
	}
}

// watchTime is for how long a goroutine looks for what it waits for before it sleeps. Loops follow one another within
// microseconds, and to wake takes some 50 of them where processors are virtual; what looks takes the time from other
// processes.
const watchTime = 20 * time.Microsecond

// mostLooks ends that where the clock stands still, as in a test of virtual time; within watchTime there are fewer.
const mostLooks = 2000

// watchFor looks for a while whether c has something to receive, if there is a processor for each thread of p. Other
// goroutines go first.
func watchFor[T any](p *Pool, c chan T) {
	if p.Threads() > processors {
		return
	}
	for began, looks := time.Now(), 0; len(c) == 0 && looks < mostLooks && time.Since(began) < watchTime; looks++ {
		runtime.Gosched()
	}
}

// processors is how many Go may use.
var processors = runtime.GOMAXPROCS(0)

// work takes indices until none is left. It reports whether it finished the last
// one outstanding; exactly one participant of a loop gets true.
func (l *loop) work() (last bool) {
	finished := int64(0)
	for {
		i := l.next.Add(1) - 1
		if i >= l.n {
			break
		}
		l.f(int(i))
		finished++
	}
	return finished > 0 && l.left.Add(-finished) == 0
}

// release drops one reference; the last one makes l available again.
func (l *loop) release() {
	if l.refs.Add(-1) == 0 {
		l.f = nil
		loops.Put(l)
	}
}

// Close ends the workers and waits for them. No Parallel may run or follow.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	close(p.offers)
	p.mu.Unlock()
	p.running.Wait()
}

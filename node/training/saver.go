package training

import (
	"errors"
	"io"
	"sync"
	"time"

	"atoll/node/clock"
)

// checkpointEvery is how often the inner optimizer's state goes to disk: what
// is lost at a kill is momentum of a few seconds, never tokens.
const checkpointEvery = 10 * time.Second

// checkpointShare keeps saves to one part in so many of the time: of the learner's, which takes
// no step while a part of its state is copied or it writes gigabytes itself, and of the disk's, which has
// deltas to write as well.
const checkpointShare = 50

// checkpointPart is how much of a state is copied at a time, in bytes: next to nothing beside a large state, and a small
// one is whole in it.
const checkpointPart = 4 << 20

// checkpointAtOnce is for how long the learner waits for the disk in all, so that a state that a fast disk takes is of one
// step. What is left then is copied between later steps, whenever the disk has taken the part before.
const checkpointAtOnce = 300 * time.Millisecond

// Save is how the inner optimizer's state is kept.
type Save struct {
	State      func() (io.Reader, error)   // what there is to save; a learner in another process has saved itself by then
	Write      func(state io.Reader) error // keeps it; it may take as long as the disk does, and an error of state is its own
	Background func(write func())          // has that done on a goroutine of its own
}

// saver keeps the inner optimizer's state on the disk. The training thread copies it part by part, and it is
// written beside everything else. There is one part in memory at most: nothing is copied while one is
// written, so a slow disk costs age and no memory.
type saver struct {
	Save
	clock  *clock.Clock
	report func(what string, err error) // what could not be saved; nil where it was

	rest   io.Reader     // of the state that is being saved, nil if none is
	part   *handover     // through which it goes
	waited time.Duration // for the disk, by the learner, in this save

	mu    sync.Mutex
	ended time.Duration // when the last save was over, or the saver began; by the clock awake
	took  time.Duration // of the learner's time and of the disk's, the last one, or so far the one under way
}

// begin counts from now.
func (s *saver) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = s.clock.Awake()
}

// due reports whether there is something to copy: a save is under way, or it is time for another.
func (s *saver) due() bool {
	if s.part != nil && !s.part.over() {
		return s.rest != nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.Awake()-s.ended > max(checkpointEvery, checkpointShare*s.took)
}

// save copies parts of the state and has them written, all of them if the disk is fast enough.
func (s *saver) save() {
	if s.part == nil || s.part.over() {
		s.start()
	}
	began := s.clock.Awake()
	late := time.NewTimer(checkpointAtOnce - s.waited)
	defer late.Stop()
	for s.rest != nil && s.next(late.C) {
	}
	s.waited += s.clock.Awake() - began
	s.spend(began)
}

// next hands over a part once the disk has taken the one before. It reports false if it is late, and then it waits for nothing.
func (s *saver) next(late <-chan time.Time) bool {
	select {
	case b := <-s.part.free:
		s.copy(b)
		return true
	default:
	}
	select {
	case b := <-s.part.free:
		s.copy(b)
	case <-s.part.done:
		s.rest = nil
	case <-late:
		return false
	}
	return true
}

// start begins to save another state.
func (s *saver) start() {
	began := s.clock.Awake()
	s.mu.Lock()
	s.took = 0
	s.mu.Unlock()
	s.waited = 0
	state, err := s.State()
	s.spend(began)
	if err != nil {
		s.report("inner optimizer state", err)
		s.over()
		return
	}
	part := newHandover(s)
	s.rest, s.part = state, part
	s.Background(func() {
		part.wrote = s.clock.Awake()
		err := s.Write(part)
		s.spend(part.wrote)
		if !errors.Is(err, errSaveCut) {
			s.report("checkpoint", err)
		}
		s.over()
		close(part.done)
	})
}

// copy hands over the next part, in b.
func (s *saver) copy(b []byte) {
	n, err := io.ReadFull(s.rest, b[:checkpointPart])
	if n > 0 {
		s.part.filled <- b[:n]
	}
	if err == nil {
		return
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		s.report("inner optimizer state", err)
		s.end()
		return
	}
	s.rest = nil
	close(s.part.filled)
}

// end leaves a save under way, unless all of it has been copied.
func (s *saver) end() {
	if s.rest != nil {
		s.rest = nil
		close(s.part.cut)
	}
}

// over records that the save under way is over.
func (s *saver) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = s.clock.Awake()
}

// spend counts the time since then for the save under way.
func (s *saver) spend(since time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took += s.clock.Awake() - since
}

// errSaveCut says that no more of a state will come.
var errSaveCut = errors.New("the learner ended while its state was saved")

// handover brings one part of a state after the other from the training thread to the writer, who reads it.
type handover struct {
	free   chan []byte   // the buffer, when the writer has no use for it
	filled chan []byte   // closed after the last part
	cut    chan struct{} // closed where no more will come
	done   chan struct{} // closed when the writer has ended
	left   []byte        // of the part that the writer has, which begins where buffer does
	buffer []byte

	saver *saver
	wrote time.Duration // since when the writer writes, by the clock awake
}

func newHandover(s *saver) *handover {
	h := &handover{saver: s, free: make(chan []byte, 1), filled: make(chan []byte, 1), cut: make(chan struct{}), done: make(chan struct{})}
	h.free <- make([]byte, checkpointPart)
	return h
}

// over reports whether the writer has ended.
func (h *handover) over() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// Read implements io.Reader, for the writer.
func (h *handover) Read(b []byte) (int, error) {
	for len(h.left) == 0 {
		h.saver.spend(h.wrote)
		err := h.next()
		if h.wrote = h.saver.clock.Awake(); err != nil {
			return 0, err
		}
	}
	n := copy(b, h.left)
	h.left = h.left[n:]
	return n, nil
}

// next waits for the next part.
func (h *handover) next() error {
	if h.buffer != nil {
		h.free <- h.buffer
		h.buffer = nil
	}
	select {
	case part, more := <-h.filled:
		if !more {
			return io.EOF
		}
		h.left, h.buffer = part, part
		return nil
	case <-h.cut:
		return errSaveCut
	}
}

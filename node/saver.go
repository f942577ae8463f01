package node

import (
	"sync"
	"time"
)

// checkpointEvery is how often the inner optimizer's state goes to disk: what
// is lost at a kill is momentum of a few seconds, never tokens.
const checkpointEvery = 10 * time.Second

// checkpointShare keeps saves to one part in so many of the time: of the learner's, which takes
// no step while its state is copied or it writes gigabytes itself, and of the disk's, which has
// deltas to write as well.
const checkpointShare = 50

// saver keeps the inner optimizer's state on the disk. The training thread copies it, and it is
// written beside everything else. There is one copy at most: nothing is copied while one is
// written, so a slow disk costs age and no memory.
type saver struct {
	clock *clock
	state func() ([]byte, error)       // copies the state; a learner in another process saves itself
	write func(state []byte)           // keeps it; it may take as long as the disk does
	aside func(write func())           // has that done on a goroutine of its own
	tell  func(what string, err error) // where the state cannot be had

	mu      sync.Mutex
	writing bool
	ended   time.Duration // when the last save was over, or the saver began; by the clock awake
	took    time.Duration // both parts of the last one
}

// begin counts from now.
func (s *saver) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = s.clock.awake()
}

// due reports whether it is time for another save.
func (s *saver) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.writing && s.clock.awake()-s.ended > max(checkpointEvery, checkpointShare*s.took)
}

// save copies the state and has it written.
func (s *saver) save() {
	began := s.clock.awake()
	state, err := s.state()
	if err != nil {
		s.tell("inner optimizer state", err)
		s.over(began)
		return
	}
	s.mu.Lock()
	s.writing = true
	s.mu.Unlock()
	s.aside(func() {
		s.write(state)
		s.over(began)
	})
}

// over notes that the save which began then is over.
func (s *saver) over(began time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = s.clock.awake()
	s.writing, s.took = false, s.ended-began
}

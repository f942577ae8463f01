package baseline

import (
	"sync"
	"time"

	"atoll/node/status"
	"atoll/node/training"
)

// spent is what a member's time goes to.
type spent int

const (
	computing spent = iota
	pacing          // asleep to keep the pace asked for
	waiting         // for others: the ring, a view, a state
	applying        // the sum
)

// account is where a member's time and tokens went. Any goroutine may use it.
type account struct {
	began time.Time
	prior uint64 // tokens that earlier processes of the member trained

	mu     sync.Mutex
	in     time.Time // when it was first in a view
	times  [applying + 1]float64
	steps  int64
	tokens uint64 // trained, by this process
	own    uint64 // of them, in states that this process reached
	joinS  float64
	loss   float64 // running mean
}

func (a *account) spend(on spent, since time.Time) { a.add(on, time.Since(since)) }

func (a *account) add(on spent, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.in.IsZero() {
		return // it is joining
	}
	a.times[on] += max(0, d.Seconds())
}

// joined notes that the member is in a view.
func (a *account) joined() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.in.IsZero() {
		a.in = time.Now()
	}
}

// stepped notes a step of the learner.
func (a *account) stepped(tokens int, loss float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.steps++
	a.tokens += uint64(tokens)
	a.loss = training.MeanLoss(a.loss, loss)
}

// contributed notes that tokens of this member's are in the new state.
func (a *account) contributed(tokens uint64, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.own += tokens; a.joinS == 0 {
		a.joinS = at.Sub(a.began).Seconds()
	}
}

// fill puts the account into a status.
func (a *account) fill(s *status.Snapshot, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := &s.Time
	t.Step, t.Paced, t.Adopt, t.Waiting = a.times[computing], a.times[pacing], a.times[applying], a.times[waiting]
	t.Total = now.Sub(a.began).Seconds()
	in := a.in
	if in.IsZero() {
		in = now
	}
	t.Joining = in.Sub(a.began).Seconds()
	// What is under way is not booked yet, and what is at the end is nobody's.
	t.Ending = max(0, t.Total-t.Joining-t.Step-t.Paced-t.Adopt-t.Waiting)
	s.TokensTrained = a.prior + a.tokens
	s.Step, s.TrainLoss, s.JoinS = a.steps, a.loss, a.joinS
	s.Account.OwnFolded = []uint64{a.own}
}

// perSecond is the rate at which this process trained since it was first in a view.
func (a *account) perSecond(now time.Time) float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := now.Sub(a.in).Seconds(); !a.in.IsZero() && s > 0 {
		return float64(a.tokens) / s
	}
	return 0
}

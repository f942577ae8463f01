package ledger

import (
	"errors"
	"fmt"
	"time"

	"atoll/gossip/wire"
	"atoll/node/hardware"
	"atoll/node/store"
)

// watch measures seconds.
type watch struct{ last time.Time }

// lap is the seconds since the one before.
func (w *watch) lap() float64 {
	now := time.Now()
	s := now.Sub(w.last).Seconds()
	w.last = now
	return s
}

// startOn opens a ledger and reads what a node reads at its start.
func startOn(o options) (t started, err error) {
	w := watch{time.Now()}
	s, err := store.Open(o.start, runID)
	if err != nil {
		return t, err
	}
	t.OpenS = w.lap()
	for p := range o.Fragments {
		if err := load(s, p); err != nil {
			return t, errors.Join(err, s.Close())
		}
	}
	t.LoadS = w.lap()
	for p := range o.Fragments {
		n, err := authors(s, p)
		if err == nil && n != o.Deltas {
			err = fmt.Errorf("fragment %d has %d authors: pass the --deltas that it was made with", p, n)
		}
		if err != nil {
			return t, errors.Join(err, s.Close())
		}
	}
	t.AuthorsS = w.lap()
	t.TotalS = t.OpenS + t.LoadS + t.AuthorsS
	t.PeakBytes = int64(hardware.PeakRSSBytes())
	return t, s.Close()
}

// load reads what a restart reads of a fragment: the records of the window, and the
// deltas that are newer than its oldest base.
func load(s *store.Store, p int) error {
	last, err := s.LastRound(p)
	if err != nil {
		return err
	}
	if _, err := s.Own(); err != nil {
		return err
	}
	return errors.Join(s.Rounds(p, last-min(last, window), last, func(uint32, store.Round) error { return nil }),
		s.Held(p, last-min(last, window), store.MaxRound, func(wire.Digest, wire.SignedHeader) error { return nil }))
}

// authors counts who contributed to a fragment.
func authors(s *store.Store, p int) (int, error) {
	through, sums, err := s.AuthorSums(p)
	if err != nil {
		return 0, err
	}
	known := map[wire.PeerID]uint64{}
	for a, sum := range sums {
		known[a] = sum.Tokens
	}
	_, err = walk(s, p, through+1, func(h wire.Header) { known[h.Author] += h.Tokens })
	return len(known), err
}

// walk reads all records of a fragment from a round on, and the headers that they name.
func walk(s *store.Store, p int, from uint32, f func(wire.Header)) (n int, err error) {
	err = s.Rounds(p, from, store.MaxRound, func(_ uint32, r store.Round) error {
		for _, id := range r.Folded {
			h, err := s.Header(id)
			if err != nil {
				return err
			}
			n++
			f(h.Header)
		}
		return nil
	})
	return n, err
}

// use measures what a node and those who read its ledger do later.
func (r *result) use() error {
	s, err := store.Open(r.dir, runID)
	if err != nil {
		return err
	}
	if err := r.perDelta(s); err != nil {
		return errors.Join(err, s.Close())
	}
	w := watch{time.Now()}
	for p := 0; r.walk && p < r.Fragments; p++ {
		n, err := walk(s, p, 1, func(wire.Header) {})
		if err != nil {
			return errors.Join(err, s.Close())
		}
		r.WalkedDeltas += n
	}
	if r.walk {
		r.WalkS = w.lap()
	}
	limit := make([]uint32, r.Fragments)
	for p := range limit {
		limit[p] = uint32(r.Rounds - held/2)
	}
	w.lap()
	if _, err := s.Retain(1<<40, limit, nil); err != nil {
		return errors.Join(err, s.Close())
	}
	r.RetainIdleS = w.lap()
	kept, err := s.Retain(1, limit, nil)
	r.RetainS, r.RetainedDropped = w.lap(), kept.Dropped
	return errors.Join(err, s.Close())
}

// perDelta is what segments take for each delta. All that is counted is in them.
func (r *result) perDelta(s *store.Store) error {
	for p := range r.Fragments {
		_, sums, err := s.AuthorSums(p)
		if err != nil {
			return err
		}
		for _, sum := range sums {
			r.SealedDeltas += int64(sum.Deltas)
		}
	}
	if r.SealedDeltas > 0 {
		r.BytesPerDelta = float64(r.SegmentBytes) / float64(r.SealedDeltas)
	}
	return nil
}

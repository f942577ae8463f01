package outer

import (
	"errors"
	"fmt"
	"slices"
)

// Loss is what a damaged anchor or own delta, or GiveUp, cost a learner: unpublished work, and own deltas of
// which nothing is left here. Others may hold and fold them all the same.
type Loss struct {
	Dropped Work
	Gone    []uint64 // seqs
	Found   error    // an ErrDamaged: the anchor that was left, of which the Adopt did not say so
}

// None says that nothing was lost, and nothing found.
func (l Loss) None() bool { return l.Dropped == Work{} && len(l.Gone) == 0 && l.Found == nil }

// ErrUnread says that the payload of an own delta cannot be read back: the disk is damaged.
var ErrUnread = errors.New("an own delta cannot be read back")

// unread is an ErrUnread that knows which.
type unread struct {
	seq uint64
	err error
}

func (u *unread) Error() string { return fmt.Sprintf("read own delta %d: %v", u.seq, u.err) }

func (u *unread) Is(target error) bool { return target == ErrUnread }

func (u *unread) Unwrap() error { return u.err }

// Follow executes an Adopt of the round machine. Damage is not an error: what it cost is the
// Loss, which the round machine wants to know.
func (l *Learner) Follow(a Adopt) (loss Loss, err error) {
	p, f := a.Fragment, &l.frags[a.Fragment]
	a.Repair = a.Discards()
	if !a.Repair && !f.tip.AnchorSound() { // nothing must be told from an anchor that memory has damaged
		a.Repair, loss.Found = true, fmt.Errorf("fragment %d round %d: %w", p, f.tip.Round, ErrDamaged)
	}
	f.sort(&a)
	if err := l.discard(p, a.Discarded); err != nil {
		return loss, err
	}
	if err := l.regain(p, a.Regained); err != nil {
		return loss, err
	}
	a.Unfold = l.readable(f, a.Unfold, &loss)
	fold := slices.Concat(a.Fold, a.Dropped) // what theta has of q leaves it either way
	if !a.Repair {
		err = l.Adopt(p, a.Tip, fold, a.Unfold, a.Returned)
	}
	if a.Repair || errors.Is(err, ErrUnread) {
		err = l.repair(p, a.Tip, fold, a.Unfold, a.Returned, &loss)
	}
	if err != nil {
		return loss, err
	}
	if err := l.discard(p, a.Dropped); err != nil {
		return loss, err
	}
	return loss, l.forget(p, a.Forgotten)
}

// sort puts own deltas that were given up here, before the round machine could know, on the lists for
// those that are gone from theta.
func (f *learning) sort(a *Adopt) {
	gone := func(seq uint64) bool { o := f.find(seq); return o != nil && o.gone }
	lost := func(seq uint64) bool { return gone(seq) && !f.find(seq).Folded }
	move := func(from, to *[]uint64) {
		for _, seq := range *from {
			if gone(seq) && to != nil {
				*to = append(slices.Clone(*to), seq)
			}
		}
		*from = slices.DeleteFunc(slices.Clone(*from), gone)
	}
	a.Discarded = slices.DeleteFunc(slices.Clone(a.Discarded), lost)
	move(&a.Fold, &a.Regained)
	move(&a.Unfold, &a.Discarded)
	move(&a.Returned, &a.Forgotten)
	move(&a.Dropped, nil)
}

// readable gives up the own deltas among seqs whose payloads cannot be read, and returns the others, which
// keep what was read: they are about to be in flight again.
func (l *Learner) readable(f *learning, seqs []uint64, loss *Loss) []uint64 {
	return slices.DeleteFunc(slices.Clone(seqs), func(seq uint64) bool {
		o := f.find(seq)
		if o == nil || o.payload != nil {
			return false
		}
		if b, err := l.payload(seq); err == nil {
			o.payload = b
			return false
		}
		f.giveUp(o, loss)
		return true
	})
}

// giveUp takes an own delta whose payload is lost off what theta is made of.
func (f *learning) giveUp(o *ownDelta, loss *Loss) {
	o.Folded, o.gone = false, true
	loss.Gone = append(loss.Gone, o.Seq)
}

// repair moves fragment p to a tip that replaces a damaged one, or from own deltas that cannot be read. The moves
// are those of Adopt, but what theta got from the damage cannot be told from work: theta = A + sum(s_k q_k : own k
// in flight), and what was unpublished or is returned is discarded, but for what earlier deltas had no room for: that was told
// from a sound anchor.
func (l *Learner) repair(p int, tip *Tip, fold, unfold, returned []uint64, loss *Loss) error {
	f := &l.frags[p]
	if err := f.checkMoves(tip, fold, unfold, returned); err != nil {
		return fmt.Errorf("repair fragment %d round %d: %w", p, tip.Round, err)
	}
	f.tip = tip
	f.mark(fold, true)
	f.mark(unfold, false)
	f.takeBack(returned)
	loss.Dropped, f.pending = f.pending, Work{}
	f.account.Discarded.add(loss.Dropped)
	for {
		err := l.rebuild(f)
		lost := (*unread)(nil)
		if !errors.As(err, &lost) {
			return err
		}
		f.giveUp(f.find(lost.seq), loss)
	}
}

package outer

import (
	"errors"
	"fmt"
)

// Loss is what an adoption cost a learner: unpublished work, and own deltas of which nothing is left here. Others
// may hold and fold these all the same.
type Loss struct {
	Lost   Work     // unpublished, by GiveUp, beside damaged global parameters or an own delta, or of one that was returned
	Gone   []uint64 // seqs of own deltas
	Device error    // an ErrDevice: what was stepped is gone with it
	Found  error    // an ErrDamaged: the global parameters that were left were, and the Adopt did not know
}

// None says that nothing was lost, and nothing found.
func (l Loss) None() bool {
	return l.Lost == Work{} && len(l.Gone) == 0 && l.Found == nil && l.Device == nil
}

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
	f, repair := &l.frags[a.Fragment], a.LosesUnpublished()
	if !repair && !f.tip.GlobalSound() { // nothing must be told from global parameters that memory has damaged
		repair, loss.Found = true, fmt.Errorf("fragment %d round %d: %w", a.Fragment, f.tip.Round, ErrDamaged)
	}
	l.readBack(f, a.Seqs(Unfolded), &loss)
	next, err := f.after(a)
	if err != nil {
		return loss, adoptError(a, err)
	}
	if !repair {
		err = l.adopt(f, a.Tip, next)
	}
	if errors.Is(err, ErrDevice) {
		repair, loss.Device = true, err
	}
	if repair || errors.Is(err, ErrUnread) {
		err = l.repair(f, a.Tip, next, &loss)
	}
	if err != nil {
		return loss, adoptError(a, err)
	}
	l.load(f)
	loss.Lost.Add(next.lost)
	return loss, nil
}

// readBack reads the payloads of own deltas that are about to be in flight again, and gives up those that
// it cannot read.
func (l *Learner) readBack(f *learning, seqs []uint64, loss *Loss) {
	for _, seq := range seqs {
		o := f.find(seq)
		if o == nil || o.lost || o.payload != nil {
			continue
		}
		var err error
		if o.payload, err = l.payload(seq); err != nil {
			o.lose(loss)
		}
	}
}

// repair moves a fragment to a tip that replaces a damaged one, or from own deltas that cannot be read. What the
// local parameters got from the damage cannot be told from work: theta = A + sum(s_k q_k : own k in flight), and what
// was unpublished or is returned is lost. What earlier deltas had no room for stays: that was told from sound
// global parameters.
func (l *Learner) repair(f *learning, tip *Tip, next adoption, loss *Loss) error {
	l.pause()
	f.complete(tip, next)
	return l.lose(f, loss)
}

// lose takes what is pending off a fragment, and out of the local parameters.
func (l *Learner) lose(f *learning, loss *Loss) error {
	loss.Lost, f.pending = f.pending, Work{}
	for {
		err := l.rebuild(f)
		lost := (*unread)(nil)
		if !errors.As(err, &lost) {
			return err
		}
		f.find(lost.seq).lose(loss)
	}
}

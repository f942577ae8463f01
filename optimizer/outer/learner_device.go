package outer

import (
	"errors"

	"atoll/optimizer"
)

// Device holds the values that a trainer steps where they are not the local parameters themselves: on
// an accelerator, or in another process.
//
// It steps while a Learner encodes a delta, or decodes some: the local parameters are the Learner's
// between a Flush and the next Load. Only what both touch waits for a step to end.
type Device interface {
	// Pause returns once no step is under way, and none begins until Resume or the end of the
	// Learner's method and of what its caller does with the result. Both may be called again.
	Pause()
	Resume()

	// Flush brings what the device has of these pieces to the local parameters. After an error these
	// pieces are as they were, or have values that are no numbers, and what the device alone had is
	// gone. Lost sets them anew in either case.
	Flush(pieces []optimizer.Span) error
	// Load has the device take these pieces from the local parameters. A device that cannot is gone, which
	// the next Flush says.
	Load(pieces []optimizer.Span)
}

// Use says that the trainer steps the values of a device. It follows NewLearner and Restore,
// after which the device has to load everything.
func (l *Learner) Use(d Device) { l.device = d }

// pieces are the places of a fragment in the parameter slab, neighbours joined.
func (f Fragment) pieces() (list []optimizer.Span) {
	for _, t := range f.Tensors {
		list = optimizer.AppendSpan(list, optimizer.Span{Offset: t.Offset, Len: t.Len})
	}
	return list
}

// ErrDevice says that the device is gone, with what was stepped there since the last Flush.
var ErrDevice = errors.New("the learner's device is gone")

func (l *Learner) pause() {
	if l.device != nil {
		l.device.Pause()
	}
}

func (l *Learner) resume() {
	if l.device != nil {
		l.device.Resume()
	}
}

// flush brings the local parameters of a fragment up to date. The device is paused from then on.
func (l *Learner) flush(f *learning) error {
	if l.device == nil {
		return nil
	}
	l.device.Pause()
	if err := l.device.Flush(f.pieces()); err != nil {
		return errors.Join(ErrDevice, err)
	}
	return nil
}

// load has the device take what the local parameters of a fragment have become.
func (l *Learner) load(f *learning) {
	if l.device != nil {
		l.device.Load(f.pieces())
	}
}

// Lost says that the device of fragment p is gone. What it had stepped and nothing has
// brought to the local parameters cannot be told from what it had published: theta = A + sum(s_k q_k :
// own k in flight), and what is pending is lost. Damage is not an error, as in Follow.
func (l *Learner) Lost(p int) (loss Loss, err error) {
	f := &l.frags[p]
	l.pause()
	err = l.lose(f, &loss)
	return loss, err
}

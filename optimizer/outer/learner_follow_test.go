package outer

import (
	"errors"
	"slices"
	"testing"
)

// drafted is a learner with one own delta in flight and a step since, whose
// payloads are read back from disk as after a restart.
func drafted(t *testing.T) (l *Learner, theta []float32, tip *Tip, disk map[uint64][]byte) {
	t.Helper()
	l, theta, tip, disk = oneFragment(toyParams())
	theta[0]++
	l.Stepped(512, []uint32{0})
	d, err := l.Draft(0)
	if err != nil {
		t.Fatal(err)
	}
	disk[d.Seq] = d.Payload
	l.find(0, d.Seq).payload = nil
	theta[1]++
	l.Stepped(256, []uint32{0})
	return l, theta, tip, disk
}

func (l *Learner) find(p int, seq uint64) *ownDelta { return l.frags[p].find(seq) }

func follow(t *testing.T, l *Learner, a Adopt) Loss {
	t.Helper()
	loss, err := l.Follow(a)
	if err != nil {
		t.Fatal(err)
	}
	return loss
}

// An own delta in flight that the disk has lost stops neither drafts nor
// adoptions for good: what cannot be told from it is given up, and accounted for.
func TestLostOwnDeltaInFlight(t *testing.T) {
	l, theta, tip, disk := drafted(t)
	clear(disk)
	if _, err := l.Draft(0); !errors.Is(err, ErrUnread) {
		t.Fatalf("a draft beside a lost delta: %v", err)
	}
	loss := follow(t, l, Adopt{Tip: tip, Repair: true})
	if loss.Dropped.Tokens != 256 || !slices.Equal(loss.Gone, []uint64{0}) {
		t.Errorf("lost %+v", loss)
	}
	if theta[0] != tip.Anchor[0] || theta[1] != tip.Anchor[1] {
		t.Errorf("theta is %v, the anchor %v", theta[:2], tip.Anchor[:2])
	}
	if a := l.Account(0); a.Total().Tokens != 768 || a.Discarded.Tokens != 768 {
		t.Errorf("account %+v", a)
	}
	theta[2]++
	l.Stepped(128, []uint32{0})
	if d, err := l.Draft(0); err != nil || d.Tokens != 128 {
		t.Errorf("the next draft: %d tokens, %v", d.Tokens, err)
	}
}

// Others hold it all the same: a chain may fold it, or leave it out again.
func TestLostOwnDeltaIsFolded(t *testing.T) {
	l, theta, tip, disk := drafted(t)
	clear(disk)
	next := (&Tip{Round: 1, Anchor: slices.Clone(tip.Anchor), Ref: tip.Ref, Tokens: 512}).seal()
	next.Anchor[0]++
	next.seal()
	loss := follow(t, l, Adopt{Tip: next, Fold: []uint64{0}}) // q cannot be taken off theta
	if loss.Dropped.Tokens != 256 || theta[0] != next.Anchor[0] {
		t.Errorf("lost %+v, theta %v, anchor %v", loss, theta[0], next.Anchor[0])
	}
	if a := l.Account(0); a.Folded.Tokens != 512 || a.Discarded.Tokens != 256 {
		t.Errorf("account %+v", a)
	}
	loss = follow(t, l, Adopt{Tip: tip, Unfold: []uint64{0}}) // nor put back
	if !slices.Equal(loss.Gone, []uint64{0}) || theta[0] != tip.Anchor[0] {
		t.Errorf("lost %+v, theta %v, anchor %v", loss, theta[0], tip.Anchor[0])
	}
	// What the round machine says of it before it has heard: it goes where it belongs.
	follow(t, l, Adopt{Tip: next, Fold: []uint64{0}})
	if a := l.Account(0); a.Folded.Tokens != 512 || theta[0] != next.Anchor[0] {
		t.Errorf("account %+v, theta %v", a, theta[0])
	}
	follow(t, l, Adopt{Tip: tip, Unfold: []uint64{0}})
	follow(t, l, Adopt{Tip: tip, Returned: []uint64{0}})
	if a := l.Account(0); a.Total().Tokens != 768 || a.Discarded.Tokens != 768 || a.Pending.Tokens != 0 {
		t.Errorf("account %+v", a)
	}
}

// A learner that is told to gives up what is unpublished, and nothing else.
func TestGiveUpDropsTheUnpublished(t *testing.T) {
	l, theta, tip, _ := drafted(t)
	loss := follow(t, l, Adopt{Tip: tip, GiveUp: true})
	if loss.Dropped != (Work{1, 256}) || loss.Gone != nil {
		t.Errorf("lost %+v", loss)
	}
	if theta[0] == tip.Anchor[0] || theta[1] != tip.Anchor[1] {
		t.Errorf("theta is %v, the anchor %v: want what is in flight and nothing else", theta[:2], tip.Anchor[:2])
	}
	if a := l.Account(0); a.Pending != (Work{}) || a.Discarded.Tokens != 256 || a.InFlight.Tokens != 512 {
		t.Errorf("account %+v", a)
	}
}

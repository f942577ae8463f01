package outer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// drafted is a learner with one own delta in flight and a step since, whose
// payloads are read back from disk as after a restart.
func drafted(t *testing.T) (l *Learner, local []float32, tip *Tip, disk map[uint64][]byte) {
	t.Helper()
	l, local, tip, disk = oneFragment(toyParams())
	local[0]++
	l.Stepped(512, []uint32{0})
	d, err := l.Draft(0)
	if err != nil {
		t.Fatal(err)
	}
	disk[d.Seq] = d.Payload
	l.find(0, d.Seq).payload = nil
	local[1]++
	l.Stepped(256, []uint32{0})
	return l, local, tip, disk
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
// adoptions for good: what cannot be told from it is given up.
func TestLostOwnDeltaInFlight(t *testing.T) {
	l, local, tip, disk := drafted(t)
	clear(disk)
	if _, err := l.Draft(0); !errors.Is(err, ErrUnread) {
		t.Fatalf("a draft beside a lost delta: %v", err)
	}
	loss := follow(t, l, Adopt{Tip: tip, Repair: true})
	if loss.Lost.Tokens != 256 || !slices.Equal(loss.Gone, []uint64{0}) {
		t.Errorf("lost %+v", loss)
	}
	if local[0] != tip.Global[0] || local[1] != tip.Global[1] {
		t.Errorf("the local value is %v, the global parameters %v", local[:2], tip.Global[:2])
	}
	if left := stateOf(l); left != fmt.Sprintf("%p %+v 0 []", &tip.Global[0], Work{}) {
		t.Errorf("left are %s", left)
	}
	local[2]++
	l.Stepped(128, []uint32{0})
	if d, err := l.Draft(0); err != nil || d.Tokens != 128 {
		t.Errorf("the next draft: %d tokens, %v", d.Tokens, err)
	}
}

// Others hold it all the same: a chain may fold it, or leave it out again.
func TestLostOwnDeltaIsFolded(t *testing.T) {
	l, local, tip, disk := drafted(t)
	clear(disk)
	next := (&Tip{Round: 1, Global: slices.Clone(tip.Global), Ref: tip.Ref, Tokens: 512}).seal()
	next.Global[0]++
	next.seal()
	own := Draft{Steps: 1, Tokens: 512}
	loss := follow(t, l, Adopt{Tip: next, Changes: changed(Folded, own)}) // q cannot be taken off the local parameters
	if loss.Lost.Tokens != 256 || loss.Gone != nil || local[0] != next.Global[0] {
		t.Errorf("lost %+v, local %v, global parameters %v", loss, local[0], next.Global[0])
	}
	loss = follow(t, l, Adopt{Tip: tip, Changes: changed(Unfolded, own)}) // nor put back
	if !slices.Equal(loss.Gone, []uint64{0}) || local[0] != tip.Global[0] {
		t.Errorf("lost %+v, local %v, global parameters %v", loss, local[0], tip.Global[0])
	}
	// What the round machine says of it before it has heard does not change the local parameters. Work that it takes for
	// pending again is dropped.
	for i, a := range []Adopt{
		{Tip: next, Changes: changed(Folded, own)},
		{Tip: tip, Changes: changed(Unfolded, own)},
		{Tip: next, Changes: changed(Dropped, own)},
		{Tip: tip, Changes: append(changed(Unfolded, own), changed(Returned, own)...)},
	} {
		loss := follow(t, l, a)
		dropped := []Work{3: {1, 512}}[i]
		if steps, _ := l.Pending(0); loss.Lost != dropped || loss.Gone != nil || local[0] != a.Tip.Global[0] || steps != 0 || len(l.InFlight(0)) > 0 {
			t.Errorf("lost %+v, %d steps are pending, local %v, global parameters %v", loss, steps, local[0], a.Tip.Global[0])
		}
	}
	if l.find(0, 0) != nil {
		t.Error("a delta that was returned is kept")
	}
}

// One that comes back only to be returned, and cannot be read, is given up.
func TestLostOwnDeltaIsReturned(t *testing.T) {
	l, local, tip, disk := drafted(t)
	own := Draft{Steps: 1, Tokens: 512}
	follow(t, l, Adopt{Tip: tip, Changes: changed(Folded, own)})
	clear(disk)
	was := local[0]
	loss := follow(t, l, Adopt{Tip: tip, Changes: append(changed(Unfolded, own), changed(Returned, own)...)})
	if steps, _ := l.Pending(0); !slices.Equal(loss.Gone, []uint64{0}) || loss.Lost != (Work{1, 512}) || steps != 1 || local[0] != was {
		t.Errorf("lost %+v, %d steps are pending, local went from %v to %v", loss, steps, was, local[0])
	}
}

// A learner that is told to gives up what is unpublished, and nothing else.
func TestGiveUpLosesTheUnpublished(t *testing.T) {
	l, local, tip, _ := drafted(t)
	loss := follow(t, l, Adopt{Tip: tip, GiveUp: true})
	if loss.Lost != (Work{1, 256}) || loss.Gone != nil {
		t.Errorf("lost %+v", loss)
	}
	if local[0] == tip.Global[0] || local[1] != tip.Global[1] {
		t.Errorf("the local value is %v, the global parameters %v: want what is in flight and nothing else", local[:2], tip.Global[:2])
	}
	if left := stateOf(l); left != fmt.Sprintf("%p %+v 0 [0]", &tip.Global[0], Work{}) {
		t.Errorf("left are %s", left)
	}
}

package node

import (
	"fmt"
	"math"
	"time"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/status"
	"atoll/optimizer/outer"
)

// lab is the laboratory of a node that was started with one, nil otherwise.
func (n *node) lab() *status.Lab {
	if !n.cfg.Lab {
		return nil
	}
	return &status.Lab{Block: n.block, Pace: n.setPace, Uphill: n.setUphill, Corrupt: n.corrupt, Link: n.host.SetShape}
}

// block cuts this node off from some peers, and from no others.
func (n *node) block(peers []string) error {
	ids, err := PeerIDs(peers)
	if err != nil {
		return fmt.Errorf("block: %w", err)
	}
	return n.host.Block(ids)
}

// PeerIDs reads peer ids as status shows them.
func PeerIDs(texts []string) ([]wire.PeerID, error) {
	ids := make([]wire.PeerID, len(texts))
	for i, text := range texts {
		if err := ids[i].UnmarshalText([]byte(text)); err != nil {
			return nil, fmt.Errorf("%.80q is no peer id; use the %d hex digits that status shows", text, 2*len(ids[i]))
		}
	}
	return ids, nil
}

// setPace changes the least time of an inner step.
func (n *node) setPace(least time.Duration) error {
	if n.train == nil {
		return fmt.Errorf("pace: this node does not train")
	}
	if least < 0 {
		return fmt.Errorf("pace: %v; use a duration, or 0 for as fast as it goes", least)
	}
	n.train.setPace(least)
	return nil
}

// setUphill has the learner lie, or tell the truth again.
func (n *node) setUphill(on bool) error {
	if n.train == nil {
		return fmt.Errorf("uphill: this node does not train")
	}
	n.train.setUphill(on)
	return nil
}

// corrupt flips a bit of the newest anchor of a fragment, in the memory that
// rounds, folds and the learner share. It does so on the fold queue while the
// training thread stands still, as only these two read anchors all the time. A
// reader for a joiner or an evaluation sees either value, as with memory that
// fails.
func (n *node) corrupt(at status.BitFlip) error {
	switch {
	case at.Fragment < 0 || at.Fragment >= len(n.plan):
		return fmt.Errorf("corrupt: fragment %d; use 0 to %d", at.Fragment, len(n.plan)-1)
	case at.Value < 0 || at.Value >= n.plan[at.Fragment].Len:
		return fmt.Errorf("corrupt: value %d of fragment %d; use 0 to %d", at.Value, at.Fragment, n.plan[at.Fragment].Len-1)
	case at.Bit < 0 || at.Bit >= status.MantissaBits:
		return fmt.Errorf("corrupt: bit %d; use 0 to %d, so that the value stays a number", at.Bit, status.MantissaBits-1)
	}
	n.work.folds.put(func() { n.flip(at) })
	return nil
}

// flip runs on the fold queue. All requested folds are done and told, so the
// tip that the loop has now is the base of the next one.
func (n *node) flip(at status.BitFlip) {
	newest := make(chan *outer.Tip, 1)
	n.post(func(core.Time) {
		n.view.event(n, "corrupted", "", fmt.Sprintf("laboratory: bit %d of value %d of the anchor of fragment %d is flipped", at.Bit, at.Value, at.Fragment))
		newest <- n.machine.Rounds().Fragment(at.Fragment).Tip()
	})
	var tip *outer.Tip
	select {
	case tip = <-newest:
	case <-n.work.ctx.Done():
		return
	}
	flipped := make(chan struct{})
	flip := func() {
		x := &tip.Anchor[at.Value]
		*x = math.Float32frombits(math.Float32bits(*x) ^ 1<<at.Bit)
		close(flipped)
	}
	if n.train == nil {
		flip()
		return
	}
	n.train.commands.put(flip)
	select {
	case <-flipped:
	case <-n.work.ctx.Done():
	}
}

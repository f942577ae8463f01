package sim

import (
	"cmp"
	"fmt"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/node/core"
)

// Version is how a node's program differs from the program of the others. The
// zero value differs in nothing.
type Version struct {
	Protocol uint32 `json:"protocol,omitempty"` // that it speaks; 0 means hello.Protocol
	OtherRun bool   `json:"other_run,omitempty"`
	Newer    bool   `json:"newer,omitempty"` // its record says what others cannot read
}

// apply makes a record what a program of this version says.
func (v Version) apply(r *hello.Record) {
	if v.Protocol != 0 {
		r.Protocol = v.Protocol
		r.Agent = fmt.Sprintf("sim %d", v.Protocol)
	}
	if v.OtherRun {
		r.Run = wire.RunID{8}
	}
}

// newerRecord is what a later version may say: the fields of today and one more.
type newerRecord struct {
	hello.Record
	Mood string `cbor:"99,keyasint"`
}

// helloDomain is what hello signs records under; it has no version, so that
// every version opens the records of every other.
const helloDomain = "atoll hello"

// sign signs a record as a program of this version does.
func (v Version) sign(n *Node, r hello.Record) (hello.Signed, error) {
	if !v.Newer {
		return hello.Sign(n.key, r)
	}
	s := hello.Signed{Bytes: wire.Marshal(newerRecord{r, "hopeful"})}
	s.Sig = wire.Sign(n.key, helloDomain, r.Run, s.Bytes)
	_, err := s.Open()
	return s, err
}

// session is what the handshake of two nodes comes to; where it fails both
// know why.
func (w *World) session(a, b *Node) bool {
	errA, errB := a.judges(b), b.judges(a)
	if errA == nil && errB == nil {
		return true
	}
	a.refuses(b, cmp.Or(errA, errB))
	b.refuses(a, cmp.Or(errB, errA))
	a.turned(errB)
	b.turned(errA)
	a.turnedAway()
	b.turnedAway()
	return false
}

// judges is what a node says to the capability record of another.
func (n *Node) judges(p *Node) error {
	if err := hello.Negotiate(n.said, p.said); err != nil {
		return err
	}
	n.knowsLeaked(p)
	return n.members.Admit(p.said, n.clock())
}

// refuses records that this node will not talk to another, and why.
func (n *Node) refuses(p *Node, reason error) {
	n.refused[p.index] = true
	n.w.refusals[pair{n.index, p.index}] = reason.Error()
}

// turned takes why another refuses this node.
func (n *Node) turned(reason error) {
	if reason != nil {
		n.do(func() { n.machine.ToldRevoked(n.clock(), reason.Error()) })
	}
}

// turnedAway ends a node that has nothing of the run yet and that everybody in
// its link refuses, as a node's start ends with exit code 3.
func (n *Node) turnedAway() {
	if n.founder || n.machine.View().Phase() == core.Ready || !n.disk.Empty() {
		return
	}
	for _, i := range n.contacts {
		if !n.refused[i] {
			return
		}
	}
	n.crash()
	n.gone = true
}

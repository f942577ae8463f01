package status

import (
	"fmt"
	"time"
)

// States of a peer that are none of its heartbeats'.
const (
	Connected = "connected" // it is connected and sends no heartbeat, as a relay, or not yet
	Left      = "left"      // it said that it leaves
	Gone      = "gone"      // it is not heard any more, and did not say why
	Revoked   = "revoked"   // what admits it was revoked: nobody listens to it
	Refused   = "refused"   // it is not taken in, or takes this node not in
)

// FadesAfter is how long who left or is gone stays in lists. Who took part is counted for ever.
const FadesAfter = 24 * time.Hour

// Known is all that decides what a key is to the run. Every screen shows what Standing says.
type Known struct {
	Trained   bool          // something that it made is folded, by the ledger
	Revoked   bool          // all that admits it
	Connected bool          // to this node
	Says      string        // the state of its newest heartbeat, "" if none came to this process
	Silent    bool          // nothing came for ten of its heartbeat periods
	Leaves    bool          // the last that was heard, by this process or an earlier one, is that it leaves
	Heard     bool          // ever, by this process or an earlier one
	For       time.Duration // since it was
}

// Standing is the state of a key, "" for nobody: who never trained is none of the run once it is not here. Who faded is left
// out of lists.
func (k Known) Standing() (state string, faded bool) {
	switch {
	case k.Revoked:
	case k.Says != "" && !k.Silent && (k.Connected || !k.Leaves):
		return k.Says, false
	case k.Says == "" && k.Connected:
		return Connected, false
	}
	switch {
	case !k.Trained:
		return "", false
	case k.Revoked:
		state = Revoked
	case k.Leaves:
		state = Left
	default:
		state = Gone
	}
	return state, !k.Heard || k.For >= FadesAfter
}

// Away says that a peer left, is gone or was revoked.
func (p Peer) Away() bool { return p.State == Left || p.State == Gone || p.State == Revoked }

// Here says that a peer takes part now, or would if its owner had it not paused. One of which no heartbeat came, as of a relay, does not.
func (p Peer) Here() bool {
	switch p.State {
	case "joining", "training", "stopped", "observing", Paused:
		return true
	}
	return false
}

// SinceText is the state for people, who see there since when a peer is away.
func (p Peer) SinceText() string {
	if p.Away() && p.LagS > 0 {
		return p.State + ", " + Age(p.LagS)
	}
	return p.State
}

// StateText is SinceText, and says of a guest that it is one.
func (p Peer) StateText() string {
	if p.Guest {
		return p.SinceText() + ", guest"
	}
	return p.SinceText()
}

// LivePeers counts the others that take part now.
func LivePeers(peers []Peer) (n int) {
	for _, p := range peers {
		if !p.Self && p.Here() && p.State != Paused {
			n++
		}
	}
	return n
}

// TookPart counts who trained.
func TookPart(peers []Peer) (n int) {
	for _, p := range peers {
		if p.Trained {
			n++
		}
	}
	return n
}

// Listed are the peers that lists show, and what there is to say of the others; "" where nobody is away.
func Listed(peers []Peer) (listed []Peer, note string) {
	away, faded, before := 0, 0, 0
	for _, p := range peers {
		switch {
		case p.Faded && p.LagS == 0:
			before++
			continue
		case p.Faded:
			faded++
			continue
		}
		listed = append(listed, p)
		if p.Away() {
			away++
		}
	}
	hours := fmt.Sprintf("%.0f h", FadesAfter.Hours())
	switch {
	case before > 0:
		note = fmt.Sprintf("%d more took part, and this machine never heard them", before)
		if faded > 0 {
			note += fmt.Sprintf("; %d more were not heard for %s", faded, hours)
		}
	case faded > 0:
		note = fmt.Sprintf("%d more took part, and were not heard for %s", faded, hours)
	case away > 0:
		note = "who left or is gone leaves this list after " + hours
	}
	return listed, note
}

package baseline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"atoll/gossip/wire"
)

// What members say to the coordinator, and what it answers. Both are JSON: a few
// hundred bytes, some times for each change of the membership.

// What a member asks for.
const (
	opReady = "ready" // a place in the next view
	opWatch = "watch" // to hear when its view is to end
)

// Limits on messages.
const (
	maxAddr    = 256 // bytes of a multiaddr with a peer id
	maxRequest = wire.MaxRequest
	// maxAnswer has room for a peer list and a view of MaxMembers.
	maxAnswer = 1 << 18
)

// Label says which state a member holds: the one after so many rounds. View is the
// view of the last round. Members with equal labels hold equal bits.
type Label struct {
	View   uint64 `json:"view"`   // 0 = the genesis
	Round  uint64 `json:"round"`  // since the genesis
	Tokens uint64 `json:"tokens"` // that all members together have trained it on
}

// before orders labels. The later view wins over more rounds, as a member that was left
// out of a view may have made one round more of the view before.
func (l Label) before(other Label) bool {
	if l.View != other.View {
		return l.View < other.View
	}
	return l.Round < other.Round
}

// Report is what a member says.
type Report struct {
	Op        string        `json:"op"`
	Addr      string        `json:"addr"` // at which others dial it
	Label     Label         `json:"label"`
	In        uint64        `json:"in"`        // the last view that it was told of
	Connected []wire.PeerID `json:"connected"` // others to which it has a connection
}

// Order is what the coordinator answers.
type Order struct {
	PeerList []Place `json:"peer_list,omitempty"` // all others that it knows: connect to them
	View     *View   `json:"view,omitempty"`      // begin with it
	Stop     bool    `json:"stop,omitempty"`      // end the view with the round that is under way
	End      *Label  `json:"end,omitempty"`       // the run is over, and this is the state of its model
}

// Place is where a member can be dialled.
type Place struct {
	ID   wire.PeerID `json:"id"`
	Addr string      `json:"addr"`
}

// View is who makes rounds together from some state on.
type View struct {
	Number  uint64        `json:"number"`  // from 1
	From    Label         `json:"from"`    // the state that it begins with
	Members []wire.PeerID `json:"members"` // in the order of the ring
	Source  wire.PeerID   `json:"source"`  // a member that holds that state
	Lacking []wire.PeerID `json:"lacking"` // those that do not: the source gives it to them
}

// place is a member's place in the ring, -1 if it has none.
func (v View) place(id wire.PeerID) int { return slices.Index(v.Members, id) }

// lacks says whether a member needs the state.
func (v View) lacks(id wire.PeerID) bool { return slices.Contains(v.Lacking, id) }

// maxCount bounds numbers of views, rounds and tokens, so that sums of them fit.
const maxCount = math.MaxInt64 / 4

func (l Label) validate() error {
	for _, f := range []struct {
		name  string
		value uint64
	}{{"view", l.View}, {"round", l.Round}, {"tokens", l.Tokens}} {
		if f.value > maxCount {
			return fmt.Errorf("label: %s is %d: at most %d", f.name, f.value, uint64(maxCount))
		}
	}
	return nil
}

func (r Report) validate() error {
	switch {
	case r.Op != opReady && r.Op != opWatch:
		return fmt.Errorf("report: op is %.20q: use %s or %s", r.Op, opReady, opWatch)
	case len(r.Addr) > maxAddr:
		return fmt.Errorf("report: addr has %d bytes: at most %d", len(r.Addr), maxAddr)
	case r.In > maxCount:
		return fmt.Errorf("report: in is %d: at most %d", r.In, uint64(maxCount))
	case len(r.Connected) > MaxMembers:
		return fmt.Errorf("report: connected has %d entries: at most %d", len(r.Connected), MaxMembers)
	}
	return r.Label.validate()
}

func (o Order) validate() error {
	if len(o.PeerList) > MaxMembers {
		return fmt.Errorf("order: peer list has %d entries: at most %d", len(o.PeerList), MaxMembers)
	}
	for _, p := range o.PeerList {
		if len(p.Addr) > maxAddr {
			return fmt.Errorf("order: an address has %d bytes: at most %d", len(p.Addr), maxAddr)
		}
	}
	if o.End != nil {
		if err := o.End.validate(); err != nil {
			return err
		}
	}
	if o.View == nil {
		return nil
	}
	return o.View.validate()
}

func (v View) validate() error {
	if n := len(v.Members); n < 1 || n > MaxMembers {
		return fmt.Errorf("view: %d members: use 1 to %d", n, MaxMembers)
	}
	if v.Number < 1 || v.Number > maxCount || v.From.View >= v.Number {
		return fmt.Errorf("view: number is %d, from a state of view %d", v.Number, v.From.View)
	}
	seen := map[wire.PeerID]bool{}
	for _, m := range v.Members {
		if seen[m] {
			return fmt.Errorf("view: %v is a member twice", m)
		}
		seen[m] = true
	}
	if !seen[v.Source] || v.lacks(v.Source) || len(v.Lacking) >= len(v.Members) {
		return fmt.Errorf("view: source %v is no member that has the state", v.Source)
	}
	for _, m := range v.Lacking {
		if !seen[m] {
			return fmt.Errorf("view: %v lacks the state and is no member", m)
		}
	}
	return v.From.validate()
}

// decode reads a message of at most limit bytes.
func decode[T interface{ validate() error }](b []byte, limit int) (m T, err error) {
	if len(b) > limit {
		return m, fmt.Errorf("message of %d bytes: at most %d", len(b), limit)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("message: %w", err)
	}
	return m, m.validate()
}

func encode(m any) []byte {
	b, err := json.Marshal(m)
	if err != nil {
		panic("baseline: encode message: " + err.Error()) // plain structs of numbers and texts
	}
	return b
}

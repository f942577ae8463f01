package core

import (
	"reflect"
	"slices"
	"testing"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// ledger is a chain of one fragment. Each of its rounds folds one own delta.
type ledger map[uint32]outer.Link

var leaver = wire.PeerID{7}

// tokensOf gives each round another amount.
func tokensOf(round uint32) uint64 { return 1 << round }

func ownAt(round uint32) wire.Digest { return wire.Digest{byte(round)} }

// chainOf has rounds first..last, of a chain with a name.
func chainOf(name byte, first, last uint32, folded func(round uint32) bool) (links []outer.Link) {
	for r := first; r <= last; r++ {
		l := outer.Link{Round: r, Chain: outer.Digest{name, byte(r)}}
		if folded(r) {
			l.Folded = []outer.ID{outer.ID(ownAt(r))}
		}
		links = append(links, l)
	}
	return links
}

func (l ledger) Rounds(_ int, from, to uint32, f func(outer.Link) error) error {
	for r := from; r <= to; r++ {
		if at, known := l[r]; known {
			if err := f(at); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l ledger) HeaderAt(_ int, _ uint32, id wire.Digest) (wire.Header, bool, error) {
	r := uint32(id[0])
	return wire.Header{Author: leaver, Round: r, Tokens: tokensOf(r)}, true, nil
}

// TestLeaveChain has a node leave a chain, all of whose rounds fold a delta of its own,
// for a snapshot with a history that folds some of them.
func TestLeaveChain(t *testing.T) {
	const union = 8
	all, none := func(uint32) bool { return true }, func(uint32) bool { return false }
	for name, c := range map[string]struct {
		closed      uint32 // of the chain that is left
		first, last uint32 // of the history
		folds       func(uint32) bool
		lost        []uint32
		final       []uint32 // of those
	}{
		"the same deltas":                {20, 6, 20, all, nil, nil},
		"of a history that begins later": {20, 10, 20, all, []uint32{6, 7, 8, 9}, []uint32{6, 7, 8, 9}},
		"none of them":                   {20, 14, 20, none, []uint32{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, []uint32{6, 7, 8, 9, 10, 11, 12}},
		"every other one":                {20, 6, 20, func(r uint32) bool { return r%2 == 0 }, []uint32{7, 9, 11, 13, 15, 17, 19}, []uint32{7, 9, 11}},
		"snapshot of an older round":     {20, 10, 16, none, []uint32{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, []uint32{6, 7, 8, 9, 10, 11, 12}},
		"snapshot older than the window": {25, 6, 10, none, []uint32{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, []uint32{6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}},
		"snapshot older, all folded":     {25, 6, 10, all, []uint32{11, 12, 13, 14, 15, 16, 17}, []uint32{11, 12, 13, 14, 15, 16, 17}},
	} {
		t.Run(name, func(t *testing.T) {
			disk := ledger{}
			for _, l := range chainOf(1, 1, c.closed, all) {
				disk[l.Round] = l
			}
			const common = 5
			left, err := LeaveChain(disk, leaver, union, [][]outer.Link{chainOf(2, c.first, c.last, c.folds)}, []uint32{common}, []uint32{c.closed}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var lost []uint32
			for _, id := range left.Own[0] {
				lost = append(lost, uint32(id[0]))
			}
			if !slices.Equal(lost, c.lost) || left.Tokens[0] != sumOf(c.lost) || left.Final[0] != sumOf(c.final) {
				t.Errorf("lost are rounds %v with %d tokens, of them final %d; want %v, %d, %d",
					lost, left.Tokens[0], left.Final[0], c.lost, sumOf(c.lost), sumOf(c.final))
			}
		})
	}
}

// TestLeaveChainDropsWhatIsInFlight has a node take a snapshot of rounds 6 to 10 that fold its deltas of even
// rounds, with own deltas on the disk of which its own chain folds that of round 9 alone. Those of the odd rounds up
// to the tips are lost, each once; later ones may still be folded.
func TestLeaveChainDropsWhatIsInFlight(t *testing.T) {
	disk := ledger{}
	for _, l := range chainOf(1, 1, 10, func(r uint32) bool { return r == 9 }) {
		disk[l.Round] = l
	}
	var own []OwnRecord
	for r := uint32(6); r <= 12; r++ {
		own = append(own,
			OwnRecord{ID: ownAt(r), Header: wire.Header{Author: leaver, Round: r, Tokens: tokensOf(r)}},
			OwnRecord{ID: wire.Digest{100 + byte(r)}, Header: wire.Header{Author: leaver, Fragment: 1, Round: r, Tokens: 1}})
	}
	even := func(r uint32) bool { return r%2 == 0 }
	left, err := LeaveChain(disk, leaver, 8, [][]outer.Link{chainOf(2, 6, 10, even)}, []uint32{5}, []uint32{10}, own)
	if err != nil {
		t.Fatal(err)
	}
	want := []wire.Digest{ownAt(9), ownAt(7)}
	if !slices.Equal(left.Own[0], want) || !slices.Equal(left.Forget[0], want) || left.Tokens[0] != sumOf([]uint32{7, 9}) || left.Final[0] != 0 {
		t.Errorf("left behind %+v", left)
	}
}

func sumOf(rounds []uint32) (tokens uint64) {
	for _, r := range rounds {
		tokens += tokensOf(r)
	}
	return tokens
}

// Records stay where the links of others begin on the same chain.
func TestContinues(t *testing.T) {
	none := func(uint32) bool { return false }
	disk := ledger{}
	for _, l := range chainOf(1, 1, 9, none) {
		disk[l.Round] = l
	}
	for what, c := range map[string]struct {
		links []outer.Link
		want  bool
	}{
		"the same chain":    {chainOf(1, 4, 12, none), true},
		"another chain":     {chainOf(2, 4, 12, none), false},
		"beyond all known":  {chainOf(1, 10, 12, none), false},
		"from genesis on":   {chainOf(1, 0, 12, none), false},
		"parted from there": {slices.Concat(chainOf(1, 9, 9, none), chainOf(2, 10, 12, none)), true},
	} {
		if got, err := Continues(disk, 0, c.links); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
}

// A link names the deltas of its round in one order, and leaves the fold's alone.
func TestLinkOf(t *testing.T) {
	folded := []outer.ID{{3}, {1}, {2}}
	tip := &outer.Tip{Round: 4, Chain: outer.Digest{5}, State: outer.Digest{6}, Tokens: 7, EndRound: 8}
	want := outer.Link{Round: 4, Chain: outer.Digest{5}, State: outer.Digest{6}, Tokens: 7, EndRound: 8, Folded: []outer.ID{{1}, {2}, {3}}}
	if got := LinkOf(tip, folded); !reflect.DeepEqual(got, want) || folded[0] != (outer.ID{3}) {
		t.Errorf("%+v of %v", got, folded)
	}
}

package finality

import (
	"bytes"
	"crypto/ed25519"
	"slices"
	"testing"

	"atoll/gossip/wire"
)

var testRun = wire.RunID(wire.Sum([]byte("test run")))

// every is the rounds between two values in tests.
const every = 4

// keys are those of n voters, in the order of the table.
func keys(n int) []ed25519.PrivateKey {
	list := make([]ed25519.PrivateKey, n)
	for i := range list {
		list[i] = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize))
	}
	slices.SortFunc(list, func(a, b ed25519.PrivateKey) int { return wire.PeerIDOf(a).Compare(wire.PeerIDOf(b)) })
	return list
}

func idsOf(keys []ed25519.PrivateKey) (list []wire.PeerID) {
	for _, k := range keys {
		list = append(list, wire.PeerIDOf(k))
	}
	return list
}

// ledger is a chain that grows. Rounds above fork have other deltas than those of other forks.
type ledger struct {
	closed uint32 // and final
	least  uint32 // rounds before it are forgotten
	fork   uint32 // 0 for none
	name   byte
	voters []wire.PeerID
}

func (l *ledger) Newest() uint32 { return l.closed - l.closed%every }

func (l *ledger) At(round uint32) (Value, bool) {
	return l.value(round), round > 0 && round <= l.closed && round >= l.least
}

func (l *ledger) value(round uint32) Value {
	return Value{Round: round, Points: []Point{l.point(round), {Round: round / 2, Chain: wire.Sum([]byte{1})}}, Voters: l.voters}
}

func (l *ledger) point(round uint32) Point {
	name := byte(0)
	if l.fork > 0 && round >= l.fork {
		name = l.name
	}
	return Point{Round: round, Chain: wire.Sum([]byte{byte(round), byte(round >> 8), name})}
}

func (l *ledger) Holds(points []Point) (yes, known bool) {
	round := points[0].Round
	return points[0] == l.point(round), round <= l.closed && round >= l.least
}

// signed is a vote of a key for a value; a zero value is none.
func signed(key ed25519.PrivateKey, phase wire.Phase, height, view uint32, v Value, proof uint32) wire.SignedVote {
	vote := wire.Vote{Phase: phase, Height: height, View: view, Round: v.Round, Proof: proof}
	if v.Round > 0 {
		vote.Value = v.Digest(testRun)
	}
	return wire.SignVote(key, testRun, vote)
}

// sealedBy is a certificate signed by some voters of the table of signers.
func sealedBy(signers []ed25519.PrivateKey, height uint32, v Value, places ...int) Certificate {
	c := Certificate{Height: height, Value: v}
	for _, i := range places {
		c.Seals = append(c.Seals, Seal{Voter: uint16(i), Sig: signed(signers[i], wire.Precommit, height, 0, v, 0).Sig})
	}
	return c
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

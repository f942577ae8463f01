package show

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/status"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
	"atoll/optimizer/rounds"
	"atoll/tensor/codec"
)

func TestSpeedometer(t *testing.T) {
	var s speedometer
	start := time.Unix(1000, 0)
	if s.perSecond() != 0 {
		t.Error("a speed before anything was measured")
	}
	for i := range 100 { // ten seconds at 50 tokens a second
		s.record(start.Add(time.Duration(i)*100*time.Millisecond), uint64(5*i), speedEvery)
	}
	if got := s.perSecond(); got != 50 || len(s.at) != 10 {
		t.Errorf("%v tokens/s of %d samples", got, len(s.at))
	}
	for i := range 200 { // much later, 7 a second
		s.record(start.Add(time.Duration(100+i)*time.Second), uint64(1000+7*i), speedEvery)
	}
	if got := s.perSecond(); got != 7 || len(s.at) != speedSamples {
		t.Errorf("%v tokens/s of %d samples", got, len(s.at))
	}
	s.record(start.Add(time.Hour), 3, speedEvery) // another chain, with fewer tokens
	if got := s.perSecond(); got != 0 {
		t.Errorf("%v tokens/s after the tokens shrank", got)
	}
}

// What strangers do cannot fill the memory of the screen.
func TestViewIsBounded(t *testing.T) {
	v := newScreen(1)
	for i := range 1000 {
		id := wire.PeerID{byte(i), byte(i >> 8)}
		addr := fmt.Sprintf("/ip4/10.0.0.1/tcp/%d", i)
		v.PeerUp(id, "", addr)
		v.Refused(id, addr, errors.New("no"))
		v.Dialled(addr, errors.New("no answer"))
		v.Saw(core.Refused{Header: wire.Header{Author: id}, Reason: errors.New("too many tokens")})
	}
	if len(v.events) != maxEvents || len(v.refused) != maxRefused || len(v.dials) != maxDials || len(v.addrs) > maxRefused {
		t.Errorf("%d events, %d refused, %d dials, %d addresses", len(v.events), len(v.refused), len(v.dials), len(v.addrs))
	}
	if last := v.events[len(v.events)-1]; last.Kind != "delta refused" {
		t.Errorf("the newest event is %+v", last)
	}
	v.Dialled("/ip4/10.0.0.1/tcp/0", nil)
	if len(v.dials) != maxDials-1 {
		t.Error("an address that answers is still said to fail")
	}
	view := View{Screen: v, At: time.Now()}
	peers := view.addRefused(nil)
	if view.At = view.At.Add(refusedFor); len(view.addRefused(nil)) > 0 {
		t.Error("who was refused long ago is still shown")
	}
	if len(peers) != maxRefused || !slices.IsSortedFunc(peers, func(a, b status.Peer) int { return strings.Compare(a.Addr, b.Addr) }) {
		t.Errorf("refused peers in no order: %v", peers)
	}
}

// A stranger that has itself refused without end neither hides other events nor who is refused now.
func TestRefusalsHideNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newScreen(1)
		v.Event("state differs", "", "this has to be seen")
		refuse := func(addr string) {
			v.Refused(wire.PeerID(wire.Sum([]byte(addr))), addr, errors.New("no"))
		}
		for i := range 1000 {
			refuse(fmt.Sprintf("/ip4/10.0.0.1/tcp/%d", i))
		}
		if events := v.events; len(events) != 1+refusedBurst || events[0].Kind != "state differs" {
			t.Errorf("%d events, the first is %v", len(events), events[0])
		}
		time.Sleep(refusedEvery)
		refuse("/ip4/10.0.0.2/tcp/1")
		refuse("/ip4/10.0.0.2/tcp/1")
		events := v.events
		if last := events[len(events)-1]; len(events) != 2+refusedBurst || !strings.Contains(last.Text, "984 more were refused") {
			t.Errorf("%d events, the last is %v", len(events), last)
		}
		peers := View{Screen: v, At: time.Now()}.addRefused(nil)
		if !slices.ContainsFunc(peers, func(p status.Peer) bool { return p.Addr == "/ip4/10.0.0.2/tcp/1" }) || len(peers) != maxRefused {
			t.Errorf("who is refused now is not among the %d that are shown", len(peers))
		}
	})
}

// A key has one row: that of who took part, which says why it is refused. Of one that is let in again nothing is said.
func TestRefusedHasOneRow(t *testing.T) {
	v := newScreen(1)
	for port, id := range []wire.PeerID{{1}, {3}, {2}, {2}, {4}} {
		v.Refused(id, fmt.Sprint("/ip4/10.0.0.1/tcp/", port), errors.New("no"))
	}
	v.PeerUp(wire.PeerID{4}, "", "")
	row := func(id byte, state, reason string) status.Peer {
		return status.Peer{ID: hex.EncodeToString(append([]byte{id}, make([]byte, 31)...)), State: state, Reason: reason}
	}
	rows := []status.Peer{row(1, status.Revoked, "by its owner"), row(3, status.Gone, "")}
	rows[1].Faded = true
	want := []status.Peer{row(1, status.Revoked, "by its owner"), row(3, status.Refused, "no"), row(2, status.Refused, "no")}
	got := View{Screen: v, At: time.Now()}.addRefused(rows)
	for i := range got {
		got[i].Addr = ""
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// What became of own deltas is in the account.
func TestAdoptedIsAccountedFor(t *testing.T) {
	v := newScreen(2)
	v.OwnFrom(7)
	adopted := func(fragment int, seq uint64, fate outer.Fate) {
		own := outer.Own{Seq: seq, Tokens: 100 * (seq + 1)}
		v.Adopted(outer.Adopt{Fragment: fragment, Changes: []outer.Change{{Own: own, Fate: fate}}})
	}
	adopted(0, 1, outer.Folded)
	adopted(0, 0, outer.Returned)
	adopted(1, 1, outer.Discarded)
	adopted(1, 2, outer.Dropped)
	if v.returned[0] != 100 || v.discarded[1] != 500 || v.returned[1]+v.discarded[0] != 0 || !v.joined.IsZero() {
		t.Errorf("returned %v, discarded %v, joined %v", v.returned, v.discarded, v.joined)
	}
	adopted(1, 1, outer.Regained)
	if got := v.discarded[1]; got != 300 {
		t.Errorf("%d tokens discarded after one of two was folded after all", got)
	}
	adopted(0, 7, outer.Folded)
	if v.joined.IsZero() {
		t.Error("its first folded delta is not noticed")
	}
}

// A status has whom an open round waits for, and for how long.
func TestStatusOfAnOpenRound(t *testing.T) {
	p := outertest.Plain(1, 1<<40, 0)
	p.Codec = codec.F32
	f := outer.Fragment{Tensors: []outer.Tensor{{Name: "w", Len: 1}}, Len: 1}
	m := rounds.New(rounds.Config{Params: p}, []*outer.Tip{outer.Genesis(f, []float32{0}, p)})
	if got, want := openStatus(m.Fragment(0), 1000), (status.Open{Round: 1, Why: "no proposal", Text: "waits for a member to propose it"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	m.SetLive([]outer.Author{{1}, {2}})
	d := outer.Delta{ID: outer.ID{9}, Author: outer.Author{1}, Round: 1, Steps: 1, Tokens: 1, Codec: p.Codec, Size: 4}
	if err := m.Offer(1000, d, false); err != nil {
		t.Fatal(err)
	}
	m.Payload(1000, 0, 1, d.ID, rounds.PayloadHeld)
	got := openStatus(m.Fragment(0), 3100)
	want := status.Open{
		Round: 1, Why: "grace", For: "02" + strings.Repeat("00", 31), WaitedS: 2.1, MostS: got.MostS,
		Text: fmt.Sprintf("waits for the delta of 0200000000, 2.1 s of at most %.1f s", got.MostS),
	}
	if got != want || got.MostS < 2.1 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

package gossip

import (
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// Who answered late the last time has longer, and keeps nobody waiting who shows to hold the payload. Others are given their time.
func TestFetchHolderOvertakesLate(t *testing.T) {
	for late := range 2 {
		a := specAlone(2)
		a.core.peers.find(wire.PeerID{2}).pull.late = late
		early, listing, headers := a.offered(t, 9)
		if len(early) != 1 || early[0].to != 2 {
			t.Fatalf("asks %+v", early)
		}
		q := questions(t, append(a.answer(listing, headers), a.wait(100, 1, 2)...), wire.GetPayload)
		if asked := len(q) == 1 && q[0].to == 1; asked != (late > 0) {
			t.Errorf("with %d late answers then asks %+v", late, q)
		}
	}
}

// A repair waits for no payload that its peer listed and does not have, if its author gives none. The author is asked for it
// all the same.
func TestRepairWaitsForNoWithheldPayload(t *testing.T) {
	for _, owes := range []bool{false, true} {
		a := specAlone(1)
		h := a.signed(9, 1)
		author := h.Header.Author
		a.core.Step(a.now, PeerUp{Peer: author, Record: hello.Record{Author: author}})
		if owes {
			a.core.pull.fails(author, MostOwed)
		}
		e := a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{h}))
		for range 3 * deadlineMinMs / busyRetryMs { // of which the author has one for waiting and one for sending
			for _, q := range questions(t, e, wire.GetPayload) {
				if q.to == 1 {
					a.fails(q, wire.NotFound)
				}
			}
			a.core.heardOf(a.now, author)
			e = a.wait(busyRetryMs, 1)
		}
		if ended := len(a.core.repair.sessions) == 0; ended != owes {
			t.Errorf("the author owes %v, and the repair ended: %v", owes, ended)
		}
		if a.core.pull.byID[h.Header.ID(a.run)] == nil {
			t.Errorf("the author owes %v, and is not asked any more", owes)
		}
	}
}

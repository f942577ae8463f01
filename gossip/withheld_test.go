package gossip

import (
	"errors"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Requests that came to no end together double the time of the next one once, however many they were.
func TestFetchLateTogether(t *testing.T) {
	a := specAlone(1)
	together := a.floodsOf(t, 1, 1, 4, 1)
	if len(together) != 4 {
		t.Fatalf("asks %+v", together)
	}
	a.now += wire.MaxWaitMs + 2*peers.DeadlineMinMs
	for _, q := range together {
		a.core.Step(a.now, Answered{Call: q.call.ID, Err: errors.New("no end")})
	}
	if late := pullOf(a.core.env.Find(wire.PeerID{1})).late; late != 1 {
		t.Errorf("after %d requests without end the time was doubled %d times", len(together), late)
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
		for range 3 * peers.DeadlineMinMs / busyRetryMs { // of which the author has one for waiting and one for sending
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

package gossip

import (
	"testing"

	"atoll/gossip/fetch"
	"atoll/gossip/hello"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// A repair waits for no payload that its peer listed and does not have, if its author gives none. The author is asked for it
// all the same.
func TestRepairWaitsForNoWithheldPayload(t *testing.T) {
	for _, owes := range []bool{false, true} {
		a := specAlone(1)
		h := a.signed(9, 1)
		author := h.Header.Author
		a.core.Step(a.now, PeerUp{Peer: author, Record: hello.Record{Author: author}})
		if owes {
			owed := a.signed(9, 1)
			owed.Header.Size++
			a.core.fetch.Want(owed.Header.ID(a.run), &owed, author)
			a.fails(questions(t, a.core.Effects(), wire.GetPayload)[0], wire.NotFound)
			a.core.Complete(a.now, owed.Header.ID(a.run), ErrUnwanted)
		}
		e := a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{h}))
		for range 3 * peers.DeadlineMinMs / fetch.BusyRetryMs { // of which the author has one for waiting and one for sending
			for _, q := range questions(t, e, wire.GetPayload) {
				if q.to == 1 {
					a.fails(q, wire.NotFound)
				}
			}
			a.core.heardOf(a.now, author)
			e = a.wait(fetch.BusyRetryMs, 1)
		}
		if ended := len(a.core.repair.sessions) == 0; ended != owes {
			t.Errorf("the author owes %v, and the repair ended: %v", owes, ended)
		}
		if !a.core.fetch.Wants(h.Header.ID(a.run)) {
			t.Errorf("the author owes %v, and is not asked any more", owes)
		}
	}
}

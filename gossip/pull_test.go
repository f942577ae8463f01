package gossip

import (
	"bytes"
	"errors"
	"testing"

	"atoll/gossip/fetch"
	"atoll/gossip/wire"
)

// sessions are the peers with a session.
func (a *alone) sessions() (ids []byte) {
	for _, p := range a.core.env.Linked {
		ids = append(ids, p.ID[0])
	}
	return ids
}

// inTurn fails each request for a payload and returns who was asked, in order, until
// nobody is asked any more.
func (a *alone) inTurn(t testing.TB, e []Effect) (asked []byte) {
	t.Helper()
	for {
		q := questions(t, e, wire.GetPayload)
		if len(q) == 0 {
			q = questions(t, a.wait(fetch.BusyRetryMs, a.sessions()...), wire.GetPayload)
		}
		if len(q) == 0 {
			return asked
		}
		if len(q) > 1 {
			t.Fatalf("asks %d at a time", len(q))
		}
		asked = append(asked, q[0].to)
		e = a.fails(q[0], wire.NotFound)
	}
}

// offered has peer 2 bring a header that peer 1 lists in a repair.
func (a *alone) offered(t testing.TB, author int) (early []question, listing question, answer []byte) {
	t.Helper()
	h := a.signed(author, 1)
	early = questions(t, a.brought(2, h), wire.GetPayload)
	return early, a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{h})
}

func TestFetchHolderFirst(t *testing.T) {
	a := specAlone(2)
	early, listing, headers := a.offered(t, 9)
	if len(early) != 1 || early[0].to != 2 {
		t.Fatalf("asks %+v", early)
	}
	a.answer(listing, headers)
	if got := a.inTurn(t, a.fails(early[0], wire.NotFound)); len(got) < 2 || got[0] != 1 {
		t.Errorf("then asks %v", got)
	}
	// The author is the last source, and is that also when it lists the delta.
	a = specAlone(2)
	h := a.signed(9, 1)
	id, author := h.Header.ID(a.run), h.Header.Author
	e := a.brought(2, h)
	a.core.fetch.Listed(id, author)
	if got := a.inTurn(t, e); !bytes.Equal(got, []byte{2, 2}) {
		t.Errorf("then asks %v", got)
	}
}

func TestFetchHolderTries(t *testing.T) {
	tries := int(fetch.MaxTries)
	a := specAlone(1)
	h := a.signed(9, 1)
	q := questions(t, a.brought(1, h), wire.GetPayload)
	for range tries - 1 {
		a.fails(q[0], wire.NotFound)
		q = questions(t, a.wait(fetch.BusyRetryMs, 1), wire.GetPayload)
	}
	a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{h}))
	if got := a.inTurn(t, a.fails(q[0], wire.NotFound)); len(got) != tries {
		t.Errorf("asked %d times more", len(got))
	}
}

func TestFetchFinalPayload(t *testing.T) {
	for base, wanted := range map[uint32]bool{0: true, 1: false} {
		a := specAlone(2)
		_, listing, headers := a.offered(t, 9)
		a.answer(listing, headers)
		ses := a.core.repair.sessions[0]
		a.chain.closed[0], a.chain.base[0] = base, base
		a.wait(100, 1, 2)
		if got := !a.core.fetch.Idle(); got != wanted {
			t.Errorf("union base %d: wanted %v", base, got)
		}
		if ended := len(a.core.repair.sessions) == 0; ended == wanted || ses.fragments[0].partial {
			t.Errorf("union base %d: the repair ended %v, and misses something %v", base, ended, ses.fragments[0].partial)
		}
	}
}

func TestFetchInvalid(t *testing.T) {
	a := specAlone(1, 2)
	h := a.header(9, 1, 0)
	payload := bytes.Repeat([]byte{7}, 3000)
	h.Header.Payload = wire.Sum(payload)
	id := h.Header.ID(a.run)
	q := questions(t, a.brought(1, h))
	if e := a.answer(q[0], payload); count[Fetched](e) != 1 {
		t.Fatalf("%v", e)
	}
	a.core.Complete(a.now, id, errors.New("does not decode"))
	a.core.Step(a.now, Forwarded{From: wire.PeerID{2}, ID: id})
	if e := append(a.core.Effects(), a.brought(2, h)...); len(questions(t, e)) != 0 {
		t.Errorf("fetches it again: %v", e)
	}
	if st := status(a.ask(7, 2, payloadRequest(id, 5000))); st != wire.NotFound {
		t.Errorf("answers %v", st)
	}
}

func TestFetchWantedAgain(t *testing.T) {
	a := newAlone()
	a.connect(1)
	h := a.signed(9, 1)
	a.inTurn(t, a.brought(1, h))
	e := a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{h}))
	if q := questions(t, e, wire.GetPayload); len(q) != 1 || q[0].Digest != h.Header.ID(a.run) {
		t.Errorf("a repair that meets it asks %+v", q)
	}
}

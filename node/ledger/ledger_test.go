package ledger

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/authors"
	"atoll/node/core"
	"atoll/node/inspect"
	"atoll/node/inspect/ledgertest"
	"atoll/node/replica"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// ledgerOf is a folder as a replica keeps things in it.
func ledgerOf(w *ledgertest.Writer) *Ledger {
	return New(w.Store, w.Plan, w.Genesis.OuterParams(), w.Members)
}

func second[T any](_ T, err error) error { return err }

// What is damaged on the disk, or not there, is gone; other errors may pass, unless the
// disk and the machine disagree about what was signed.
func TestErrorsOfTheLedger(t *testing.T) {
	w := ledgertest.New(t).Rounds(4).Bases()
	l := ledgerOf(w)
	payload, chunk := w.FirstDelta(0, 1), []byte("a chunk")
	id := wire.Sum(chunk)
	w.Flip(payload)
	w.DamageBase("0-4-")
	w.Check(l.Store.PutBase(1, 6, strings.NewReader("not a tip")))
	w.Check(l.PutChunk(id, chunk))
	path := filepath.Join(w.Dir, "chunks", hex.EncodeToString(id[:]))
	w.Check(os.WriteFile(path, []byte("damaged"), 0o600))
	w.Check(l.RaiseMark(0, 9))
	c := w.Delta(0, 9, 0, w.Keys[0])
	h, err := w.Store.Header(wire.Digest(c.Delta.ID))
	w.Check(err)
	for _, e := range []struct {
		what string
		err  error
		want error
	}{
		{"a damaged payload", second(l.Payload(payload)), replica.ErrGone},
		{"no payload", second(l.Payload(wire.Digest{})), replica.ErrGone},
		{"a damaged base", second(l.Base(0, 4)), replica.ErrGone},
		{"no base", second(l.Base(0, 3)), replica.ErrGone},
		{"a base that is no tip", second(l.Base(1, 6)), replica.ErrGone},
		{"a damaged index", gone(store.ErrIndex), replica.ErrFatal},
		{"a disk that is away", gone(os.ErrPermission), os.ErrPermission},
		{"a damaged chunk", second(l.Chunk(id)), store.ErrCorrupt},
		{"a round signed twice", l.PutOwn(core.StoreOwn{ID: wire.Digest(c.Delta.ID), Header: h, Payload: c.Payload}), replica.ErrFatal},
		{"an own delta that is not known", l.ForgetOwn([]wire.Digest{{}}), nil},
	} {
		if !errors.Is(e.err, e.want) || errors.Is(e.err, replica.ErrGone) && e.want != replica.ErrGone {
			t.Errorf("%s: %v, want %v", e.what, e.err, e.want)
		}
	}
	if l.HasChunk(id) {
		t.Error("a damaged chunk is not fetched again")
	}
	w.Close()
}

// What a replica puts in it gets out again.
func TestLedgerRoundTrip(t *testing.T) {
	w := ledgertest.New(t).Rounds(5).Bases()
	l := ledgerOf(w)
	links := func(p int) (links []outer.Link) {
		w.Check(l.Rounds(p, 1, store.MaxRound, func(link outer.Link) error { links = append(links, link); return nil }))
		return links
	}
	before := links(0)
	if !slices.IsSortedFunc(before[4].Folded, outer.CompareIDs) || len(before[4].Folded) != 2 {
		t.Errorf("folded %v", before[4].Folded)
	}
	dropped := w.FirstDelta(0, 5)
	w.Check(l.DropPayload(dropped))
	held := 0
	w.Check(l.Held(0, 4, func(id wire.Digest, _ wire.SignedHeader) {
		if held++; id == dropped {
			t.Error("a delta without payload is held")
		}
	}))
	if _, known, err := l.HeaderAt(0, 1, wire.Digest{}); held != 3 || known || err != nil {
		t.Errorf("%d held; knows a header that is not there: %v, %v", held, known, err)
	}
	var in []replica.InstalledFragment
	for p, tip := range w.Tips {
		keep := p == 0 // the other fragment's links begin at genesis
		first := map[bool]uint32{true: 3}[keep]
		to := links(p)[max(first, 1)-1:]
		if !keep {
			to = append([]outer.Link{{}}, to...)
		}
		in = append(in, replica.InstalledFragment{Tip: tip, Links: to, Keep: keep})
	}
	w.Check(l.Install(in))
	if after := links(0); len(after) != 5 || after[4].Chain != before[4].Chain || len(links(1)) != 5 {
		t.Errorf("records after the install: %v and %v", after, links(1))
	}
	tip, err := l.Base(1, 5)
	if err != nil || tip.State != w.Tips[1].State {
		t.Errorf("base: %v", err)
	}
	if authors := authorsOf(w, l); len(authors) != 2 || l.Counted() == nil {
		t.Errorf("authors %v", authors)
	}
	w.Close()
}

func authorsOf(w *ledgertest.Writer, l *Ledger) (authors []wire.PeerID) {
	w.Check(l.Authors(func(a wire.PeerID) { authors = append(authors, a) }))
	return authors
}

// A restart credits authors in the order of their first deltas, whether these are in the index or in segments: by round,
// then fragment, then the order of the record.
func TestAuthorsComeInTheOrderOfFolds(t *testing.T) {
	const late, last = 20, 300 // authors who come one by one, and then rounds for segments
	w := ledgertest.New(t).Rounds(1)
	first, err := w.Store.Round(0, 1)
	w.Check(err)
	var want []wire.PeerID
	for _, id := range first.Folded {
		h, err := w.Store.Header(id)
		w.Check(err)
		want = append(want, h.Header.Author)
	}
	both := w.Keys
	for i := range byte(late) { // of two that begin in one round, the one in the first fragment comes first
		other := []ed25519.PrivateKey{key(100 + 2*i), key(101 + 2*i)}
		for p := range w.Plan {
			w.Keys = []ed25519.PrivateKey{both[0], other[p]}
			w.Round(p)
			want = append(want, wire.PeerIDOf(other[p]))
		}
	}
	w.Keys = both
	w.Rounds(last).Bases()
	l := ledgerOf(w)
	l.params.WindowUnion = 4
	check := func(where string) {
		t.Helper()
		if got := authorsOf(w, l); !slices.Equal(got, want) {
			t.Errorf("%s: authors %v, want %v", where, got, want)
		}
	}
	check("from the index")
	w.Check(l.Archive([]uint32{last, last}))
	if through, _, err := l.AuthorSums(0); err != nil || through <= late {
		t.Errorf("archived up to round %d, %v", through, err)
	}
	check("from segments")
	w.Close()
}

func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// What a ledger archives it still has: a replay comes to the same, and so does the count by author.
// What a restart reads stays in the index.
func TestArchive(t *testing.T) {
	const rounds, window = 140, 4 // more than go into a segment
	w := ledgertest.New(t).Rounds(rounds).Bases()
	l := ledgerOf(w)
	l.params.WindowUnion = window
	before, after := make([]authors.Tokens, len(w.Plan)), make([]authors.Tokens, len(w.Plan))
	limit := make([]uint32, len(w.Plan))
	for p := range w.Plan {
		var err error
		before[p], err = authors.Count(l.Store, p, l.params, l.members)
		w.Check(err)
		limit[p] = rounds
	}
	w.Check(l.Archive(limit))
	files, err := filepath.Glob(filepath.Join(w.Dir, "segments", "*", "*"))
	if w.Check(err); len(files) != len(w.Plan) {
		t.Errorf("segments %v", files)
	}
	for p := range w.Plan {
		through, _, err := l.AuthorSums(p)
		w.Check(err)
		if through == 0 || through >= rounds-window {
			t.Errorf("fragment %d is archived up to round %d", p, through)
		}
		after[p], err = authors.Count(l.Store, p, l.params, l.members)
		if w.Check(err); before[p].Deltas() != after[p].Deltas() || before[p].Beyond() != after[p].Beyond() {
			t.Errorf("fragment %d: %d deltas, were %d", p, after[p].Deltas(), before[p].Deltas())
		}
		for _, k := range w.Keys {
			if id := wire.PeerIDOf(k); before[p].Counted(id) != after[p].Counted(id) {
				t.Errorf("fragment %d: %d tokens of %v, were %d", p, after[p].Counted(id), id, before[p].Counted(id))
			}
		}
	}
	w.Close()
	v, err := inspect.Verify(t.Context(), w.Dir)
	if w.Check(err); !v.FromGenesis || v.Rounds != rounds*uint64(len(w.Plan)) || v.Deltas != 2*v.Rounds {
		t.Errorf("replay %+v", v)
	}
}

// A start counts what guests made as folds do, from the index and from segments: none of it counts for the budget, and
// who made it has all of it in its account. As a member it counts in full.
func TestGuestsAreCountedApart(t *testing.T) {
	const asGuest, asMember, window = 140, 2, 4 // rounds: more than go into a segment
	g, owner := ledgertest.Guests(1 << 40)
	w := ledgertest.NewOf(t, g)
	w.Admit(owner, 0, false)
	w.Admit(owner, 1, true)
	w.Rounds(asGuest)
	w.Admit(owner, 1, false)
	w.Rounds(asMember).Bases()
	l := ledgerOf(w)
	l.params.WindowUnion = window
	first, second := wire.PeerIDOf(w.Keys[0]), wire.PeerIDOf(w.Keys[1])
	check := func(what string) {
		t.Helper()
		for p := range w.Plan {
			a, err := authors.Count(l.Store, p, l.params, l.members)
			w.Check(err)
			if a.Counted(first) != 100*(asGuest+asMember) || a.Made(first) != a.Counted(first) || a.Counted(second) != 200*asMember || a.Made(second) != 200*(asGuest+asMember) {
				t.Errorf("%s: fragment %d counts %d and %d for the budget, and %d as guests", what, p, a.Counted(first), a.Counted(second), a.Beyond())
			}
			if sum := a.Counted(first) + a.Counted(second); sum != w.Tips[p].Tokens {
				t.Errorf("%s: fragment %d counts %d tokens, its tip has %d", what, p, sum, w.Tips[p].Tokens)
			}
		}
	}
	check("from the index")
	w.Check(l.Archive([]uint32{asGuest, asGuest}))
	if through, _, err := l.AuthorSums(0); err != nil || through == 0 {
		t.Errorf("nothing is archived, %v", err)
	}
	check("from segments")
	w.Close()
}

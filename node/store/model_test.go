package store

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"slices"
	"testing"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

// model is what a store should hold, in plain maps.
type model struct {
	headers  map[wire.Digest]wire.SignedHeader
	payloads map[wire.Digest][]byte
	own      map[wire.Digest]uint64
	marks    map[int]uint32
	rounds   map[spot]Round
	bases    map[spot]string
	meta     map[string]string
}

// spot is a round of a fragment.
type spot struct {
	fragment int
	round    uint32
}

func newModel() model {
	return model{
		map[wire.Digest]wire.SignedHeader{}, map[wire.Digest][]byte{}, map[wire.Digest]uint64{},
		map[int]uint32{}, map[spot]Round{}, map[spot]string{}, map[string]string{},
	}
}

func (m model) clone() model {
	return model{
		maps.Clone(m.headers), maps.Clone(m.payloads), maps.Clone(m.own),
		maps.Clone(m.marks), maps.Clone(m.rounds), maps.Clone(m.bases), maps.Clone(m.meta),
	}
}

// world runs a store and its model side by side.
type world struct {
	dir     string
	s       *Store
	now     model // what reads must show
	durable model // what a kill must leave
	seq     uint64
}

func (w *world) open(t *rapid.T) {
	var err error
	if w.s, err = Open(w.dir, testRun); err != nil {
		t.Fatal(err)
	}
	w.s.perSegment = 2
}

// done takes note of a commit, whatever brought it about.
func (w *world) done(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
	if len(w.s.pending) == 0 {
		w.durable = w.now.clone()
	}
}

const (
	modelFragments = 2
	modelRounds    = 6
)

func drawSpot(t *rapid.T) spot {
	return spot{rapid.IntRange(0, modelFragments-1).Draw(t, "fragment"), rapid.Uint32Range(1, modelRounds).Draw(t, "round")}
}

func drawDelta(t *rapid.T, author byte) delta {
	at := drawSpot(t)
	return makeDelta(author, at.fragment, at.round)
}

func (w *world) putDelta(t *rapid.T) {
	d := drawDelta(t, rapid.Byte().Draw(t, "author")%3+2)
	err := d.put(w.s)
	w.now.headers[d.id], w.now.payloads[d.id] = d.h, d.payload
	w.done(t, err)
}

func (w *world) putHeader(t *rapid.T) {
	d := drawDelta(t, rapid.Byte().Draw(t, "author")%3+2)
	err := w.s.PutHeader(d.id, d.h)
	w.now.headers[d.id] = d.h
	w.done(t, err)
}

func (w *world) dropPayload(t *rapid.T) {
	d := drawDelta(t, rapid.Byte().Draw(t, "author")%4+1)
	err := w.s.DropPayload(d.id)
	if _, known := w.now.headers[d.id]; known == errors.Is(err, ErrNotFound) {
		t.Fatalf("drop of a delta known %v: %v", known, err)
	} else if known {
		delete(w.now.payloads, d.id)
		w.done(t, err)
	}
}

func (w *world) forgetDelta(t *rapid.T) {
	d := drawDelta(t, rapid.Byte().Draw(t, "author")%3+2) // own ones stay
	sealed := w.s.view(func(tx *bbolt.Tx) error {
		if entryOf(tx, d.id) == nil {
			return ErrNotFound
		}
		return nil
	}) != nil
	err := w.s.ForgetDelta(d.id)
	if sealed && err == nil {
		return // its round is final
	}
	if _, known := w.now.headers[d.id]; !known && err == nil {
		return
	}
	delete(w.now.headers, d.id)
	delete(w.now.payloads, d.id)
	w.done(t, err)
}

func (w *world) raiseMark(t *rapid.T) {
	at := drawSpot(t)
	before := w.now.marks[at.fragment]
	err := w.s.RaiseMark(at.fragment, at.round)
	w.now.marks[at.fragment] = max(before, at.round)
	w.done(t, err)
	if at.round > before && len(w.s.pending) != 0 {
		t.Fatal("a mark is not committed")
	}
}

func (w *world) putOwn(t *rapid.T) {
	d := drawDelta(t, 1)
	fragment, round := int(d.h.Header.Fragment), d.h.Header.Round
	w.seq++
	err := d.putOwn(w.s, w.seq)
	if refused := round <= w.now.marks[fragment]; refused != errors.Is(err, ErrMark) {
		t.Fatalf("round %d with the mark at %d: %v", round, w.now.marks[fragment], err)
	} else if refused {
		return
	}
	w.now.headers[d.id], w.now.payloads[d.id] = d.h, d.payload
	w.now.own[d.id], w.now.marks[fragment] = w.seq, round
	w.done(t, err)
	if len(w.s.pending) != 0 {
		t.Fatal("an own delta is not committed")
	}
}

func (w *world) forgetOwn(t *rapid.T) {
	d := drawDelta(t, 1)
	if _, known := w.now.headers[d.id]; known {
		err := w.s.ForgetOwn(d.id)
		delete(w.now.own, d.id)
		w.done(t, err)
	}
}

func (w *world) putRound(t *rapid.T) {
	at := drawSpot(t)
	r := Round{Chain: wire.Digest{rapid.Byte().Draw(t, "chain")}, Folded: make([]wire.Digest, rapid.IntRange(0, 3).Draw(t, "folded"))}
	err := w.s.PutRound(at.fragment, at.round, r)
	w.now.rounds[at] = r
	w.done(t, err)
}

func (w *world) truncateRounds(t *rapid.T) {
	at := drawSpot(t)
	err := w.s.TruncateRounds(at.fragment, at.round)
	maps.DeleteFunc(w.now.rounds, func(k spot, _ Round) bool { return k.fragment == at.fragment && k.round > at.round })
	w.done(t, err)
}

func (w *world) putBase(t *rapid.T) {
	at, blob := drawSpot(t), rapid.SampledFrom([]string{"", "a tip", "another tip"}).Draw(t, "blob")
	err := w.s.PutBase(at.fragment, at.round, encoded(blob))
	w.now.bases[at] = blob
	w.done(t, err)
}

func (w *world) dropBase(t *rapid.T) {
	at := drawSpot(t)
	err := w.s.DropBase(at.fragment, at.round)
	delete(w.now.bases, at)
	w.done(t, err)
}

func (w *world) putMeta(t *rapid.T) {
	k, v := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"), rapid.String().Draw(t, "value")
	err := w.s.Put(k, []byte(v))
	w.now.meta[k] = v
	w.done(t, err)
}

// retain drops payloads of some of the rounds, oldest first.
func (w *world) retain(t *rapid.T) {
	keep, limit := rapid.Int64Range(1, 2000).Draw(t, "keep"), make([]uint32, modelFragments)
	for i := range limit {
		limit[i] = rapid.Uint32Range(0, modelRounds).Draw(t, "limit")
	}
	kept, err := w.s.Retain(keep, limit, nil)
	total, left := kept.Bases, 0
	for id, b := range w.now.payloads {
		if _, held := w.s.Has(id); held {
			total += int64(len(b))
			if h := w.now.headers[id].Header; h.Round <= limit[h.Fragment] {
				left++
			}
		} else {
			delete(w.now.payloads, id)
			kept.Dropped--
		}
	}
	if err == nil && (kept.Dropped != 0 || kept.Total() != total || total > keep && left > 0) {
		t.Fatalf("keep %d up to %v: %+v, %d bytes, %d more may go", keep, limit, kept, total, left)
	}
	w.done(t, err)
}

// seal moves some of the rounds into segments. Nothing changes by it.
func (w *world) seal(t *rapid.T) {
	limit := make([]uint32, modelFragments)
	for i := range limit {
		limit[i] = rapid.Uint32Range(0, modelRounds).Draw(t, "limit")
	}
	_, err := w.s.Seal(limit, tokensOf)
	w.done(t, err)
}

func (w *world) flush(t *rapid.T) { w.done(t, w.s.Flush()) }

func (w *world) reopen(t *rapid.T) {
	if err := w.s.Close(); err != nil {
		t.Fatal(err)
	}
	w.durable = w.now.clone()
	w.open(t)
	w.checkFiles(t)
}

// checkFiles compares the files that a start leaves with the model.
func (w *world) checkFiles(t *rapid.T) {
	for sub, want := range map[string]int{tmpDir: 0, deltasDir: len(w.now.payloads), basesDir: len(w.now.bases)} {
		if left := names(t, w.dir, sub); len(left) != want {
			t.Fatalf("%d files in %s, want %d", len(left), sub, want)
		}
	}
}

func (w *world) kill(t *rapid.T) {
	kill(t, w.s)
	w.now = w.durable.clone()
	w.open(t)
	w.checkFiles(t)
}

// check compares all that can be read with the model.
func (w *world) check(t *rapid.T) {
	w.checkDeltas(t)
	w.checkOwn(t)
	for fragment := range modelFragments {
		w.checkRounds(t, fragment)
		w.checkBases(t, fragment)
	}
	for k, v := range w.now.meta {
		if got, err := w.s.Get(k); err != nil || string(got) != v {
			t.Fatalf("value of %q is %q, %v, want %q", k, got, err, v)
		}
	}
}

func (w *world) checkDeltas(t *rapid.T) {
	checkHeld(t, w.s)
	count := 0
	for fragment := range modelFragments {
		err := w.s.Headers(fragment, 0, modelRounds, func(id wire.Digest, h wire.SignedHeader) error {
			count++
			if w.now.headers[id] != h {
				t.Fatalf("header %v is not the one put", id)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count != len(w.now.headers) {
		t.Fatalf("%d headers, want %d", count, len(w.now.headers))
	}
	for id := range w.now.headers {
		got, err := w.s.Payload(id)
		want, held := w.now.payloads[id]
		if held && (err != nil || !bytes.Equal(got, want)) || !held && !errors.Is(err, ErrNotFound) {
			t.Fatalf("payload %v, held %v: %v", id, held, err)
		}
	}
}

func (w *world) checkOwn(t *rapid.T) {
	own, err := w.s.Own()
	if err != nil || len(own) != len(w.now.own) {
		t.Fatalf("%d own deltas, %v, want %d", len(own), err, len(w.now.own))
	}
	for i, o := range own {
		if w.now.own[o.ID] != o.Seq || i > 0 && own[i-1].Seq >= o.Seq {
			t.Fatalf("own delta %v has seq %d, want %d, ascending", o.ID, o.Seq, w.now.own[o.ID])
		}
	}
	for fragment := range modelFragments {
		if mark, err := w.s.Mark(fragment); err != nil || mark != w.now.marks[fragment] {
			t.Fatalf("mark of fragment %d is %d, %v, want %d", fragment, mark, err, w.now.marks[fragment])
		}
	}
}

func (w *world) checkRounds(t *rapid.T, fragment int) {
	count, last := 0, uint32(0)
	err := w.s.Rounds(fragment, 0, modelRounds, func(round uint32, r Round) error {
		want, ok := w.now.rounds[spot{fragment, round}]
		if !ok || r.Chain != want.Chain || !slices.Equal(r.Folded, want.Folded) {
			t.Fatalf("fragment %d round %d is %v, want %v", fragment, round, r, want)
		}
		count, last = count+1, round
		return nil
	})
	want := 0
	for at := range w.now.rounds {
		if at.fragment == fragment {
			want++
		}
	}
	got, lastErr := w.s.LastRound(fragment)
	if err = errors.Join(err, lastErr); err != nil || count != want || got != last {
		t.Fatalf("fragment %d has %d rounds, last %d, %v, want %d, last %d", fragment, count, got, err, want, last)
	}
}

func (w *world) checkBases(t *rapid.T, fragment int) {
	var want []uint32
	for at, blob := range w.now.bases {
		if at.fragment != fragment {
			continue
		}
		want = append(want, at.round)
		if got, err := w.s.Base(fragment, at.round); err != nil || string(got) != blob {
			t.Fatalf("base %v is %q, %v, want %q", at, got, err, blob)
		}
	}
	slices.Sort(want)
	if got, err := w.s.Bases(fragment); err != nil || !slices.Equal(got, want) {
		t.Fatalf("bases of fragment %d are %v, %v, want %v", fragment, got, err, want)
	}
}

// Any sequence of calls, reopenings and kills leaves what plain maps would: a
// kill undoes exactly what was put since the last commit.
func TestStoreAgainstModel(t *testing.T) {
	parent := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(parent, "")
		if err != nil {
			t.Fatal(err)
		}
		w := &world{dir: dir, now: newModel(), durable: newModel()}
		w.open(t)
		t.Repeat(map[string]func(*rapid.T){
			"":               w.check,
			"putDelta":       w.putDelta,
			"putHeader":      w.putHeader,
			"dropPayload":    w.dropPayload,
			"forgetDelta":    w.forgetDelta,
			"putOwn":         w.putOwn,
			"forgetOwn":      w.forgetOwn,
			"raiseMark":      w.raiseMark,
			"putRound":       w.putRound,
			"truncateRounds": w.truncateRounds,
			"putBase":        w.putBase,
			"dropBase":       w.dropBase,
			"putMeta":        w.putMeta,
			"retain":         w.retain,
			"seal":           w.seal,
			"flush":          w.flush,
			"reopen":         w.reopen,
			"kill":           w.kill,
		})
		if err := w.s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

package gossip

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// keyed begins a session with a peer that has a key, and so can sign.
func (a *alone) keyed(key int) wire.PeerID {
	id := wire.PeerIDOf(testKey(key))
	a.core.Step(a.now, PeerUp{Peer: id})
	a.core.Effects()
	return id
}

// saidBy has an ordinary heartbeat of a peer with a key arrive.
func (a *alone) saidBy(id wire.PeerID, change func(b *wire.Heartbeat)) []Effect {
	return a.told(0, func(b *wire.Heartbeat) {
		b.Author = id
		if p := a.core.env.Find(id); p != nil && p.Heartbeat != nil {
			b.Seq = p.Heartbeat.Seq + 1
		}
		if change != nil {
			change(b)
		}
	})
}

// specChunk is chunk i of the tip of a fragment. The last chunk is short.
func specChunk(f, i, chunks int) []byte {
	size := wire.ChunkSize
	if i == chunks-1 {
		size = 100
	}
	return bytes.Repeat([]byte{byte(f + 1), byte(i)}, size/2)
}

// tipsOf is a manifest of tips of so many chunks each, of one round.
func (a *alone) tipsOf(author wire.PeerID, round uint32, chunks int) wire.Manifest {
	m := wire.Manifest{Author: author}
	for f := range a.chain.Fragments() {
		fm := wire.FragmentManifest{Round: round, Closed: round, Chain: wire.Digest{byte(f + 1)}, State: wire.Digest{byte(f + 2)}}
		for i := range chunks {
			c := specChunk(f, i, chunks)
			fm.Size += uint64(len(c))
			fm.Chunks = append(fm.Chunks, wire.Sum(c))
		}
		m.Fragments = append(m.Fragments, fm)
	}
	return m
}

// gives answers a request for a snapshot with a manifest that a key signs.
func (a *alone) gives(q question, key int, m wire.Manifest) []Effect {
	return a.answer(q, wire.EncodeManifest(testKey(key), a.run, m))
}

// fetches begins to fetch a snapshot of a peer that the link names, and returns the
// request for its manifest.
func (a *alone) fetches(t testing.TB, key int) (wire.PeerID, question) {
	t.Helper()
	id := a.keyed(key)
	a.core.env.Config.Trusted = []wire.PeerID{id}
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Joining})
	a.core.FetchSnapshot(a.now)
	q := questions(t, a.core.Effects(), wire.GetManifest)
	if len(q) != 1 || q[0].call.To != id {
		t.Fatalf("asked %+v", q)
	}
	return id, q[0]
}

// A node of a run of small tips reads a small manifest at most.
func TestManifestsAreReadByTheRun(t *testing.T) {
	for _, c := range []struct {
		tip  uint64
		most int
	}{{99, 1 << 10}, {wire.ChunkSize, 1 << 10}, {wire.MaxChunks * wire.ChunkSize, 2 * 140_000}} {
		a := newAlone()
		a.core.env.cfg.MaxTip = c.tip
		_, q := a.fetches(t, 1)
		if got := q.call.MaxResponse; got > c.most || got < c.most/8 {
			t.Errorf("a snapshot of %d bytes: a manifest of %d is read, want at most %d", c.tip, got, c.most)
		}
	}
}

// A snapshot source of large tips has the time that hashing them takes, and never as long as p2p gives it.
func TestManifestsOfLargeTipsTakeTime(t *testing.T) {
	for tips, want := range map[uint64]int64{0: effect.CallMs, 10e9: effect.CallMs + 50_000, 1e12: mostSnapshotMs} {
		a := newAlone()
		a.core.env.cfg.SnapshotBytes = tips
		if _, q := a.fetches(t, 1); q.call.TimeoutMs != want {
			t.Errorf("a snapshot of %d bytes: %d ms, want %d", tips, q.call.TimeoutMs, want)
		}
	}
}

// compares begins a repair with a peer that closed some rounds, and returns the
// request for sets.
func (a *alone) compares(t testing.TB, id byte, closed ...uint32) question {
	t.Helper()
	a.up(id)
	a.told(id, func(b *wire.Heartbeat) { b.Closed = closed })
	a.core.Compare(a.now, wire.PeerID{id})
	q := questions(t, a.core.Effects(), wire.GetRounds)
	if len(q) != 1 {
		t.Fatalf("asked %+v", q)
	}
	return q[0]
}

// shown answers a request for sets: the same for each range, changed by change.
func (a *alone) shown(q question, closed uint32, change func(i int, r *wire.RangeAnswer)) []Effect {
	answers := make([]wire.RangeAnswer, len(q.Ranges))
	for i, r := range q.Ranges {
		answers[i].Closed = closed
		answers[i].Chain, _ = a.chain.ChainDigest(int(r.Fragment), r.From-1)
		if change != nil {
			change(i, &answers[i])
		}
	}
	return a.answer(q, wire.EncodeRounds(answers))
}

// lists has a peer show one delta more, in round 1 of fragment 0, and returns the
// request for its header.
func (a *alone) lists(t testing.TB, id byte) question {
	t.Helper()
	e := a.shown(a.compares(t, id, 1, 0), 1, func(i int, r *wire.RangeAnswer) {
		if i == 0 {
			r.Sets = []wire.Digest{{5}}
		}
	})
	q := questions(t, e, wire.GetHeaders)
	if len(q) != 1 || len(q[0].Rounds) != 1 || q[0].Rounds[0] != (wire.RoundKey{Round: 1}) {
		t.Fatalf("asked %+v", q)
	}
	return q[0]
}

// signed is a header of a key for round 1, and of a peer whose id no key has
// where that is what is wrong with it.
func (a *alone) signed(key int, round uint32) wire.SignedHeader {
	return wire.SignHeader(testKey(key), a.run, wire.Header{Round: round, Steps: 1, Tokens: 1, Size: 1})
}

// fault does something that breaks the protocol, and returns whose fault it is.
type fault func(t *testing.T, a *alone) ([]Effect, wire.PeerID)

var (
	specSender = wire.PeerID{1}
	specAuthor = wire.PeerID{9}
)

// fetchesBlob has a peer hold a blob of two parts that the core wants, and returns the request
// for a part, and the parts as they travel.
func (a *alone) fetchesBlob(t *testing.T, id byte) (question, [2][]byte) {
	t.Helper()
	f := newFiles(t, 1, 2*wire.PartSize)
	b := f.list[0]
	a.up(id)
	a.core.WantBlobs(a.now, f.list)
	q := questions(t, a.wait(holdingsMs, id), wire.GetHoldings)
	var all wire.PartSet
	all.Add(0)
	parts := questions(t, a.answer(q[0], wire.EncodeHoldings([]wire.PartSet{all})), wire.GetPart)
	if len(parts) != 1 || parts[0].Parts != all {
		t.Fatalf("asked %+v", parts)
	}
	var bodies [2][]byte
	for i := range bodies {
		bodies[i] = wire.Part{Index: i, Tree: f.trees[b.Digest], Bytes: f.bytes[b.Digest][i*wire.PartSize:][:wire.PartSize]}.Encode()
	}
	return parts[0], bodies
}

var specFaultsOf = map[string]fault{
	"holdings that W-43 refuses": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		a.up(1)
		a.core.WantBlobs(a.now, []Blob{{wire.Digest{1}, 1}})
		q := questions(t, a.wait(holdingsMs, 1), wire.GetHoldings)
		return a.answer(q[0], wire.EncodeHoldings(nil)), specSender
	},
	"part that W-44 refuses": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		q, parts := a.fetchesBlob(t, 1)
		parts[0][100] ^= 1
		return a.answer(q, parts[0]), specSender
	},
	"part that was not asked for": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		q, parts := a.fetchesBlob(t, 1)
		return a.answer(q, parts[1]), specSender
	},
	"request that W-24 to W-31 or W-42 refuse": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		a.core.Step(a.now, Requested{Handle: 1, From: specSender, Request: []byte{wire.Version, 99}})
		return a.core.Effects(), specSender
	},
	"peer list that W-33 refuses": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		return a.answer(questions(t, a.up(1))[0], []byte{0xff}), specSender
	},
	"peer list with a record that does not open": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		return a.learns(t, make([]byte, 200)), specSender
	},
	"peer list with a word that no owner signed": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		a.guests(t, nil, peersOf(1)...)
		h := wire.NewRevocation(0, 1, wire.Digest{9}, []byte("gone"))
		return a.learnsAll(t, wire.PeerList{Words: [][]byte{member.Word{Statement: wire.SignHeader(testKey(51), a.run, h)}.Encode()}}), specSender
	},
	"heartbeat with another number of fragments": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		b := wire.Heartbeat{Author: specAuthor, Seq: 1, State: wire.Training, Closed: make([]uint32, 3), Unpublished: make([]uint64, 3)}
		a.core.Step(a.now, Received{From: specSender, Message: wire.Message{Heartbeat: &b}})
		return a.core.Effects(), specAuthor
	},
	"header of a fragment that the run does not have": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		h := a.header(specAuthor[0], 1, 0)
		h.Header.Fragment = 2
		return a.brought(1, h), specAuthor
	},
	"header with a payload larger than the run allows": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		a.core.headers.MaxPayload = 2999
		return a.brought(1, a.header(specAuthor[0], 1, 0)), specAuthor
	},
	"delta that F-1 to F-3 refuse": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		h := a.header(specAuthor[0], 1, 0)
		a.brought(1, h)
		a.core.Complete(a.now, h.Header.ID(a.run), errors.New("refused"))
		return a.core.Effects(), specAuthor
	},
	"payload with another size or digest": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		a.connect(1)
		return a.answer(questions(t, a.brought(1, a.header(specAuthor[0], 1, 0)))[0], make([]byte, 3000)), specSender
	},
	"rounds that W-34 refuses": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		return a.answer(a.compares(t, 1, 0, 0), []byte{0x80}), specSender
	},
	"rounds with a base above closed": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		return a.shown(a.compares(t, 1, 0, 0), 3, func(_ int, r *wire.RangeAnswer) { r.Base = 4 }), specSender
	},
	"rounds with closed 4294967295": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		return a.shown(a.compares(t, 1, 0, 0), math.MaxUint32, nil), specSender
	},
	"headers that W-36 refuses": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		return a.answer(a.lists(t, 1), []byte{1}), specSender
	},
	"header that was not asked for": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		return a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{a.signed(9, 2)})), specSender
	},
	"header with another signature, in repair": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		h := a.signed(9, 1)
		h.Sig[5] ^= 1
		return a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{h})), specSender
	},
	"manifest that does not open": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		id, q := a.fetches(t, 1)
		return a.answer(q, []byte{0x80}), id
	},
	"manifest of another author": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		id, q := a.fetches(t, 1)
		return a.gives(q, 2, a.tipsOf(wire.PeerIDOf(testKey(2)), 1, 1)), id
	},
	"manifest with another number of fragments": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		id, q := a.fetches(t, 1)
		m := a.tipsOf(id, 1, 1)
		m.Fragments = m.Fragments[:1]
		return a.gives(q, 1, m), id
	},
	"manifest with a tip larger than the run allows": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		a.core.env.cfg.MaxTip = 99
		id, q := a.fetches(t, 1)
		return a.gives(q, 1, a.tipsOf(id, 1, 1)), id
	},
	"chunk with another size or digest": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		id, q := a.fetches(t, 1)
		chunks := questions(t, a.gives(q, 1, a.tipsOf(id, 1, 1)), wire.GetChunk)
		return a.answer(chunks[0], make([]byte, 100)), id
	},
	"packed chunk that C-18 refuses": func(t *testing.T, a *alone) ([]Effect, wire.PeerID) {
		id, q := a.fetches(t, 1)
		a.core.env.cfg.Unpack = toyUnpack
		chunks := questions(t, a.gives(q, 1, a.tipsOf(id, 1, 1)), wire.GetChunk)
		return a.answer(chunks[0], specChunk(0, 0, 1)), id
	},
}

func specFaultTable(t *testing.T, s *spectest.Spec) {
	rows := s.Table(t, "faults")
	if len(rows) != len(specFaultsOf) {
		t.Errorf("%d faults in the text, %d here", len(rows), len(specFaultsOf))
	}
	for _, row := range rows {
		t.Run(row[0], func(t *testing.T) {
			commit := specFaultsOf[row[0]]
			if commit == nil {
				t.Fatal("nobody commits it here")
			}
			a := newAlone()
			effects, whose := commit(t, a)
			sameIDs(t, "blamed", blamed(effects), whose)
			if author := whose == specAuthor; author != (row[1] == "author") {
				t.Errorf("the text gives the fault to the %s", row[1])
			}
			if p := a.core.env.Find(whose); p != nil && p.Refused == "" {
				t.Error("the peer is not marked")
			}
		})
	}
}

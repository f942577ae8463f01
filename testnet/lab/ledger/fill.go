package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"atoll/gossip/wire"
	"atoll/node/store"
)

const (
	// window is W_u of the default rules, in rounds: what is older is final.
	window = 256
	// margin is how many of the last rounds a node leaves in the index: those of the window, and
	// those between its kept tips.
	margin = window + archiveEvery
	// archiveEvery is about how many rounds close in the 30 s between two looks at what is final.
	archiveEvery = 32
	// held is how many of the last rounds have their payloads.
	held = 64
	// payloadBytes keeps the folder small; the store does not mind.
	payloadBytes = 64
)

var runID = wire.RunID{30}

// seed differs from process to process: one that goes on makes other deltas.
func seed() (s [32]byte) {
	binary.BigEndian.PutUint64(s[:], uint64(time.Now().UnixNano()))
	return s
}

// maker makes headers and records.
type maker struct {
	options
	s       *store.Store
	rand    *rand.ChaCha8
	authors []wire.PeerID
}

// fill makes the ledger, and tells how many seconds it took. It goes on with one that is not
// complete.
func fill(o options, log io.Writer) (seconds float64, err error) {
	began := time.Now()
	s, err := store.Open(o.dir, runID)
	if err != nil {
		return 0, err
	}
	m := maker{options: o, s: s, rand: rand.NewChaCha8(seed())}
	for i := range o.Deltas {
		m.authors = append(m.authors, wire.PeerID(wire.Sum([]byte{byte(i), byte(i >> 8)})))
	}
	last, err := m.done()
	for round := last + 1; int(round) <= o.Rounds && err == nil; round++ {
		err = m.round(round)
		if round%1000 == 0 {
			fmt.Fprintf(log, "%d of %d rounds, %.0f s\n", round, o.Rounds, time.Since(began).Seconds())
		}
	}
	return time.Since(began).Seconds(), errors.Join(err, s.Close())
}

// done is the last round that all fragments have.
func (m *maker) done() (round uint32, err error) {
	for p := range m.Fragments {
		last, err := m.s.LastRound(p)
		if err != nil {
			return 0, err
		}
		if p == 0 || last < round {
			round = last
		}
	}
	return round, nil
}

// round closes a round of every fragment.
func (m *maker) round(round uint32) error {
	for p := range m.Fragments {
		var r store.Round
		for _, author := range m.authors {
			id, err := m.delta(p, round, author)
			if err != nil {
				return err
			}
			r.Folded = append(r.Folded, id)
		}
		r.Tokens = uint64(round) * 16 * 24 * 512
		m.fill(r.Chain[:])
		m.fill(r.State[:])
		if err := m.s.PutRound(p, round, r); err != nil {
			return err
		}
	}
	if round%archiveEvery != 0 || round <= margin {
		return nil
	}
	return m.archive(round - margin)
}

func (m *maker) fill(b []byte) { _, _ = m.rand.Read(b) } // it has no errors

// delta puts a delta of a round.
func (m *maker) delta(p int, round uint32, author wire.PeerID) (wire.Digest, error) {
	payload := make([]byte, payloadBytes)
	m.fill(payload)
	var h wire.SignedHeader
	h.Header = wire.Header{
		Author: author, Fragment: uint16(p), Round: round, Base: round - 1, Steps: 24, Tokens: 24 * 512,
		Codec: 4, Size: payloadBytes, Payload: wire.Sum(payload),
	}
	m.fill(h.Sig[:])
	id := h.Header.ID(runID)
	if int(round)+held > m.Rounds {
		return id, m.s.PutDelta(id, h, payload)
	}
	return id, m.s.PutHeader(id, h)
}

// archive is what a node does every 30 s: it keeps a newer base, and puts away what is
// final.
func (m *maker) archive(last uint32) error {
	limit := make([]uint32, m.Fragments)
	for p := range limit {
		limit[p] = last
		if err := errors.Join(m.s.PutBase(p, last, strings.NewReader("a tip")), m.dropBases(p, last)); err != nil {
			return err
		}
	}
	_, err := m.s.Seal(limit, counted)
	return err
}

func (m *maker) dropBases(p int, last uint32) error {
	rounds, err := m.s.Bases(p)
	for _, r := range rounds {
		if r < last {
			err = errors.Join(err, m.s.DropBase(p, r))
		}
	}
	return err
}

// counted says that all tokens of a round count.
func counted(round []wire.Header) []uint64 {
	counts := make([]uint64, len(round))
	for i, h := range round {
		counts[i] = h.Tokens
	}
	return counts
}

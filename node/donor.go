package node

import (
	"context"
	"crypto/ed25519"
	"sync"
	"time"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// replyManifest serves the tips of one moment: of each fragment the newest
// base that still lets a joiner fold deltas on their way.
func (n *node) replyManifest(handle uint64) {
	rounds := n.machine.Rounds()
	if m, ok := n.donor.fresh(rounds); ok {
		n.answer(handle, reply{response: wire.Response{Status: wire.OK, Body: m}.Encode()})
		return
	}
	wants := make([]donation, rounds.Fragments())
	for p := range wants {
		wants[p] = donate(rounds, p)
	}
	n.work.goRun(func(context.Context) {
		m, err := n.donor.make(n.key, n.run, n.tips, wants)
		n.answerBulk(handle, wire.Digest{}, m, err)
	})
}

// donatedLag is how many rounds behind its own tip a donor gives: the deltas
// of the last rounds may still be on their way and have to be folded by the
// joiner itself.
const donatedLag = 2

// donate chooses among the kept bases that are inside the union window, where
// the links that lead to them are known. The tip itself always is.
func donate(rounds *outer.Rounds, p int) (d donation) {
	tip := rounds.Tip(p).Round
	for _, base := range rounds.Bases(p) {
		links := rounds.Links(p, base)
		if len(links) > 0 && (len(d.links) == 0 || base+donatedLag <= tip) {
			d = donation{round: base, closed: rounds.Closed(p), links: links}
		}
	}
	return d
}

// donation is what a manifest says of one fragment.
type donation struct {
	round, closed uint32
	links         []outer.Link
}

// donor keeps the chunks of the manifests it handed out of late. They take
// the size of the tips in memory while somebody joins.
type donor struct {
	mu       sync.Mutex
	manifest []byte
	made     time.Time
	wants    []donation // what the manifest was made of
	chunks   map[wire.Digest][]byte
	previous map[wire.Digest][]byte
}

// A manifest is shared by joiners that come at once. It is made anew when it is
// older than manifestFresh, when more than manifestRounds have closed since
// (the joiner would have to fetch them all), and when a late delta changed the
// chain that leads to it. The chunks of the one before stay, so that a slow
// joiner can finish.
const (
	manifestFresh  = 15 * time.Second
	manifestRounds = 4
)

func (d *donor) fresh(rounds *outer.Rounds) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.manifest == nil || time.Since(d.made) > manifestFresh {
		return nil, false
	}
	for p, w := range d.wants {
		l, ok := rounds.Link(p, w.round)
		if !ok || l.Chain != w.links[len(w.links)-1].Chain || rounds.Closed(p) > w.closed+manifestRounds {
			return nil, false
		}
	}
	return d.manifest, true
}

func (d *donor) chunk(id wire.Digest) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.chunks[id]
	if !ok {
		c, ok = d.previous[id]
	}
	return c, ok
}

// make encodes the tips and signs their manifest.
func (d *donor) make(key ed25519.PrivateKey, run wire.RunID, t *tips, wants []donation) ([]byte, error) {
	var m wire.Manifest
	chunks := map[wire.Digest][]byte{}
	for p, w := range wants {
		f := wire.FragmentManifest{Round: w.round, Closed: w.closed}
		if !allGenesis(wants) {
			tip, err := t.get(p, w.round)
			if err != nil {
				return nil, err
			}
			blob := core.EncodeSnapshot(tip.Encode(), w.links)
			f.Chain, f.State = wire.Digest(tip.Chain), wire.Digest(tip.State)
			f.Size, f.Chunks = uint64(len(blob)), wire.ChunkDigests(blob)
			for i, id := range f.Chunks {
				at := i * wire.ChunkSize
				chunks[id] = blob[at : at+f.ChunkLen(i)]
			}
		}
		m.Fragments = append(m.Fragments, f)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.previous, d.chunks = d.chunks, chunks
	d.manifest, d.made, d.wants = wire.EncodeManifest(key, run, m), time.Now(), wants
	return d.manifest, nil
}

// allGenesis says that the run has not folded anything that a joiner could
// not make from genesis.
func allGenesis(wants []donation) bool {
	for _, w := range wants {
		if w.round > 0 {
			return false
		}
	}
	return true
}

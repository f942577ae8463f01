package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// replyManifest serves tips: those of given rounds, one for each fragment, or
// those of one moment, of each fragment the newest base that still lets a joiner
// fold deltas on their way.
func (n *node) replyManifest(handle uint64, at []uint32) { n.giveManifest(handle, at, maxDonorTries) }

// maxDonorTries is how often a donor chooses what it gives. Rounds close and are
// folded again between its choice and the reading of a base, which may be gone
// then; for the asker a pause is a long time.
const maxDonorTries = 4

// giveManifest is replyManifest with so many tries.
func (n *node) giveManifest(handle uint64, at []uint32, tries int) {
	rounds, stream := n.machine.Rounds(), n.handles[handle].ctx
	if stream == nil {
		return // it failed before the loop came to it
	}
	if m, ok := n.donor.fresh(rounds); ok && at == nil {
		n.answerBulk(handle, wire.Digest{}, m, nil)
		return
	}
	wants := make([]donation, rounds.Fragments())
	for p := range wants {
		if at == nil {
			wants[p] = donate(n.genesis.Outer, rounds, p)
		} else {
			wants[p] = donateAt(n.genesis.Outer, rounds, p, at[p])
		}
	}
	n.work.goRun(func(ctx context.Context) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(stream, cancel)()
		m, err := n.donor.make(ctx, n.key, n.run, n.tips, wants, at == nil)
		if at == nil && tries > 1 && outdated(err) {
			n.post(func(core.Time) { n.giveManifest(handle, at, tries-1) })
			return
		}
		n.answerBulk(handle, wire.Digest{}, m, err)
	})
}

// outdated reports whether what was to be given is not there any more.
func outdated(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, errOvertaken)
}

// donatedLag is how many rounds behind its own tip a donor gives: the deltas
// of the last rounds may still be on their way and have to be folded by the
// joiner itself.
const donatedLag = 2

// donate chooses among the kept bases that are inside the union window, where
// the links that lead to them are known. The tip itself always is.
func donate(params outer.Params, rounds *outer.Rounds, p int) (d donation) {
	tip := rounds.Tip(p).Round
	for _, base := range rounds.Bases(p) {
		links := core.History(params, rounds, p, base)
		if len(links) > 0 && (len(d.links) == 0 || base+donatedLag <= tip) {
			d = donation{round: base, closed: rounds.Closed(p), start: base, links: links}
		}
	}
	return d
}

// maxDonatedFolds is how many rounds a donor folds again for the tip of a round
// whose base it has dropped already: bases of odd rounds stay for two, and two
// donors are seldom further apart.
const maxDonatedFolds = 4

// donateAt is the tip of a given round: a kept base, or folded again from the
// one below it. A round that this node cannot make is left without links.
func donateAt(params outer.Params, rounds *outer.Rounds, p int, round uint32) donation {
	d := donation{closed: rounds.Closed(p)}
	base, found := uint32(0), false
	for _, b := range rounds.Bases(p) {
		if b <= round {
			base, found = b, true
		}
	}
	if !found || round > rounds.Tip(p).Round || round-base > maxDonatedFolds {
		return d
	}
	d.round, d.start, d.links = round, base, core.History(params, rounds, p, round)
	for r := base + 1; r <= round; r++ {
		d.sets = append(d.sets, rounds.Set(p, r))
	}
	return d
}

// donation is what a manifest says of one fragment.
type donation struct {
	round, closed uint32
	links         []outer.Link    // up to round; none: nothing to give
	start         uint32          // the kept base from which the tip is made
	sets          [][]outer.Delta // of the rounds from there to round
}

func (d donation) link() outer.Link { return d.links[len(d.links)-1] }

// tip is that of the round, from the base and what was folded since.
func (d donation) tip(t *tips, p int) (*outer.Tip, error) {
	tip, err := t.get(p, d.start)
	for i := 0; err == nil && i < len(d.sets); i++ {
		var set []outer.Contribution
		if set, err = t.read(d.sets[i]); err == nil {
			tip, _, err = outer.Fold(t.params, t.plan[p], tip, d.start+uint32(i)+1, set)
		}
	}
	if err == nil && tip.Chain != d.link().Chain {
		err = fmt.Errorf("tip of fragment %d round %d to give away: %w", p, d.round, errOvertaken)
	}
	return tip, err
}

// donor keeps the chunks of the tips that it handed out of late.
type donor struct {
	making sync.Mutex // one manifest at a time: it takes memory and hashing
	rested time.Time  // nothing is folded for others before; under making

	mu       sync.Mutex
	manifest []byte // the last of the node's own choice
	made     time.Time
	wants    []donation // what it was made of
	blobs    []*blob    // the last used last
	bytes    int        // of all of them
	set      int        // of the largest manifest
}

// blob is one fragment's tip as joiners take it.
type blob struct {
	fragment int
	round    uint32
	chain    wire.Digest
	state    wire.Digest
	first    uint32 // round of its first link
	size     int
	digests  []wire.Digest
	chunks   map[wire.Digest][]byte
}

// A manifest is shared by joiners that come at once. It is made anew when it is
// older than manifestFresh, when more than manifestRounds have closed since
// (the joiner would have to fetch them all), and when a late delta changed the
// chain that leads to it. Chunks that nobody asked for lately go first, once
// there are more than those of donatedSets whole manifests: a slow joiner can
// finish, and memory is bounded.
const (
	manifestFresh  = 15 * time.Second
	manifestRounds = 4
	donatedSets    = 2
)

func (d *donor) fresh(rounds *outer.Rounds) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.manifest == nil || time.Since(d.made) > manifestFresh {
		return nil, false
	}
	for p, w := range d.wants {
		l, ok := rounds.Link(p, w.round)
		if !ok || l.Chain != w.link().Chain || rounds.Closed(p) > w.closed+manifestRounds {
			return nil, false
		}
	}
	return d.manifest, true
}

// chunk finds a chunk that some manifest of late named.
func (d *donor) chunk(id wire.Digest) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, b := range d.blobs {
		if c, ok := b.chunks[id]; ok {
			d.touch(i)
			return c, true
		}
	}
	return nil, false
}

// touch makes a blob the last used one.
func (d *donor) touch(i int) {
	b := d.blobs[i]
	d.blobs = append(slices.Delete(d.blobs, i, i+1), b)
}

// errNothingHeld says that none of the rounds asked for can be given.
var errNothingHeld = errors.New("no tip of the rounds asked for is held")

// madeSince returns the last manifest of the node's own choice, if it was made
// while its asker waited.
func (d *donor) madeSince(asked time.Time) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.manifest, d.manifest != nil && d.made.After(asked)
}

// make cuts the tips into chunks and signs their manifest, unless ctx ends, which
// is that of the asker. A manifest of the node's own choice is for everybody who
// asks soon.
func (d *donor) make(ctx context.Context, key ed25519.PrivateKey, run wire.RunID, t *tips, wants []donation, own bool) ([]byte, error) {
	asked := time.Now()
	d.making.Lock()
	defer d.making.Unlock()
	if made, ok := d.madeSince(asked); ok && own {
		return made, nil
	}
	if !own {
		wants = d.afford(wants)
	}
	m, size, err := d.cut(ctx, t, wants, own)
	if err != nil {
		return nil, err
	}
	signed := wire.EncodeManifest(key, run, m)
	d.mu.Lock()
	defer d.mu.Unlock()
	if own {
		d.manifest, d.made, d.wants = signed, time.Now(), wants
	}
	d.shrink(size)
	return signed, nil
}

// donorRest is how many times as long as it folded for others a donor folds
// nothing for them: anybody may ask for it, and it is to take a fifth of one core
// at most. Other donors may have a base of those rounds.
const donorRest = 4

// afford leaves out, while the donor rests, what would have to be folded.
func (d *donor) afford(wants []donation) []donation {
	if time.Now().After(d.rested) {
		return wants
	}
	wants = slices.Clone(wants)
	for p, w := range wants {
		if len(w.sets) > 0 && (len(w.links) == 0 || d.find(p, w) == nil) {
			wants[p] = donation{closed: w.closed}
		}
	}
	return wants
}

// rest begins after what was folded since began.
func (d *donor) rest(began time.Time) {
	if until := time.Now().Add(donorRest * time.Since(began)); until.After(d.rested) {
		d.rested = until
	}
}

// cut cuts the tips that can be given into chunks, and returns their size in
// bytes. Of the node's own choice all must be there.
func (d *donor) cut(ctx context.Context, t *tips, wants []donation, own bool) (m wire.Manifest, size int, err error) {
	if !own {
		defer d.rest(time.Now())
	}
	for p, w := range wants {
		if err := ctx.Err(); err != nil {
			return m, 0, err
		}
		f := wire.FragmentManifest{Closed: w.closed}
		if len(w.links) > 0 && (!own || !allGenesis(wants)) {
			b, err := d.blob(t, p, w)
			if err != nil && own {
				return m, 0, err
			}
			if err == nil {
				size += b.size
				f = b.manifest(w.closed)
			}
		}
		m.Fragments = append(m.Fragments, f)
	}
	if !own && size == 0 {
		return m, 0, errNothingHeld
	}
	return m, size, nil
}

func (b *blob) manifest(closed uint32) wire.FragmentManifest {
	return wire.FragmentManifest{
		Round: b.round, Closed: max(closed, b.round), Chain: b.chain, State: b.state, Size: uint64(b.size), Chunks: b.digests,
	}
}

// blob returns the chunks of a donation, cut now if they are not at hand.
func (d *donor) blob(t *tips, p int, w donation) (*blob, error) {
	if b := d.find(p, w); b != nil {
		return b, nil
	}
	tip, err := w.tip(t, p)
	if err != nil {
		return nil, err
	}
	raw := core.EncodeSnapshot(tip.Encode(), w.links)
	b := &blob{
		fragment: p, round: w.round, chain: wire.Digest(tip.Chain), state: wire.Digest(tip.State), first: w.links[0].Round,
		size: len(raw), digests: wire.ChunkDigests(raw), chunks: map[wire.Digest][]byte{},
	}
	for i, id := range b.digests {
		b.chunks[id] = raw[i*wire.ChunkSize : min(len(raw), (i+1)*wire.ChunkSize)]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blobs = append(d.blobs, b)
	d.bytes += b.size
	return b, nil
}

// find returns the blob of the same tip and links.
func (d *donor) find(p int, w donation) *blob {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, b := range d.blobs {
		if b.fragment == p && b.round == w.round && b.chain == wire.Digest(w.link().Chain) && b.first == w.links[0].Round {
			d.touch(i)
			return b
		}
	}
	return nil
}

// shrink drops what was not used for longest, beyond so many manifests of the
// largest size.
func (d *donor) shrink(set int) {
	d.set = max(d.set, set)
	for len(d.blobs) > 0 && d.bytes > donatedSets*d.set {
		d.bytes -= d.blobs[0].size
		d.blobs = slices.Delete(d.blobs, 0, 1)
	}
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

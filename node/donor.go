package node

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"sync"
	"time"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
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
	wants := core.Donations(n.genesis.Outer, rounds, at)
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
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, core.ErrOvertaken) || errors.Is(err, core.ErrNothingToGive)
}

// donated is the tip of a donation, from the base and what was folded since.
func (t *tips) donated(p int, d core.Donation) (*outer.Tip, error) {
	base, err := t.get(p, d.Start)
	if err != nil {
		return nil, err
	}
	return d.Tip(base, func(tip *outer.Tip, deltas []outer.Delta) (*outer.Tip, error) {
		set, err := t.read(deltas)
		if err != nil {
			return nil, err
		}
		tip, _, err = outer.Fold(t.params, t.plan[p], tip, tip.Round+1, set)
		return tip, err
	})
}

// donor keeps the chunks of the tips that it handed out of late.
type donor struct {
	making sync.Mutex // one manifest at a time: it takes memory and hashing
	rested time.Time  // nothing is folded for others before; under making

	mu       sync.Mutex
	manifest []byte // the last of the node's own choice
	made     time.Time
	wants    []core.Donation // what it was made of
	blobs    []*blob         // the last used last
	bytes    int             // of all of them
	set      int             // of the largest manifest
}

// blob is one fragment's tip as joiners take it.
type blob struct {
	fragment int
	first    uint32 // round of its first link
	manifest wire.FragmentManifest
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

func (d *donor) fresh(m *rounds.Machine) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.manifest == nil || time.Since(d.made) > manifestFresh {
		return nil, false
	}
	for p, w := range d.wants {
		l, ok := m.Link(p, w.Round)
		if !ok || l.Chain != w.Link().Chain || m.Closed(p) > w.Closed+manifestRounds {
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
func (d *donor) make(ctx context.Context, key ed25519.PrivateKey, run wire.RunID, t *tips, wants []core.Donation, own bool) ([]byte, error) {
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
func (d *donor) afford(wants []core.Donation) []core.Donation {
	if time.Now().After(d.rested) {
		return wants
	}
	wants = slices.Clone(wants)
	for p, w := range wants {
		if len(w.Sets) > 0 && (len(w.Links) == 0 || d.find(p, w) == nil) {
			wants[p] = core.Donation{Closed: w.Closed}
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
func (d *donor) cut(ctx context.Context, t *tips, wants []core.Donation, own bool) (m wire.Manifest, size int, err error) {
	if !own {
		defer d.rest(time.Now())
	}
	m, err = core.ManifestOf(wants, own, func(p int, w core.Donation) (wire.FragmentManifest, error) {
		if err := ctx.Err(); err != nil {
			return wire.FragmentManifest{}, err
		}
		b, err := d.blob(t, p, w)
		if err != nil {
			return wire.FragmentManifest{}, err
		}
		size += b.size()
		return b.manifest, nil
	})
	return m, size, cmp.Or(ctx.Err(), err)
}

// size is what it takes of memory, in bytes.
func (b *blob) size() int { return int(b.manifest.Size) }

// blob returns the chunks of a donation, cut now if they are not at hand.
func (d *donor) blob(t *tips, p int, w core.Donation) (*blob, error) {
	if b := d.find(p, w); b != nil {
		return b, nil
	}
	tip, err := t.donated(p, w)
	if err != nil {
		return nil, err
	}
	b := &blob{fragment: p, first: w.Links[0].Round}
	b.manifest, b.chunks = core.CutSnapshot(tip, w.Links)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blobs = append(d.blobs, b)
	d.bytes += b.size()
	return b, nil
}

// find returns the blob of the same tip and links.
func (d *donor) find(p int, w core.Donation) *blob {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, b := range d.blobs {
		if b.fragment == p && b.manifest.Round == w.Round && b.manifest.Chain == wire.Digest(w.Link().Chain) && b.first == w.Links[0].Round {
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
		d.bytes -= d.blobs[0].size()
		d.blobs = slices.Delete(d.blobs, 0, 1)
	}
}

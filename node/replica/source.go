package replica

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// replyPayload serves a payload, or finds that the disk has damaged it.
func (r *Replica) replyPayload(e gossip.ReplyPayload) {
	r.exec.Serve(e.Handle, func(func() bool) {
		payload, err := r.ledger.Payload(e.ID)
		if err != nil {
			r.lost(&lostPayload{e.ID, err})
			r.replyBulk(e.Handle, nil, wire.Digest{})
			return
		}
		r.replyBulk(e.Handle, payload, e.ID)
	})
}

func (r *Replica) replyBulk(handle uint64, body []byte, payload wire.Digest) {
	reply := Reply{Response: wire.Found(body), Bulk: true, Payload: payload}
	r.exec.Post(func(core.Time) { r.net.Reply(handle, reply) })
}

// replyChunk serves a chunk of a recent manifest, or of the initial values, or none. It is
// packed here, anew for each asker: the disk keeps it as it is read by others.
func (r *Replica) replyChunk(e gossip.ReplyChunk) {
	b := r.source.holds(e.Digest)
	r.exec.Serve(e.Handle, func(func() bool) {
		var chunk []byte
		switch {
		case b != nil:
			chunk = r.readChunk(b, e.Digest)
		case r.genesis.Chunk != nil:
			chunk = r.genesis.Chunk(e.Digest)
		}
		r.replyBulk(e.Handle, core.PackChunk(chunk), wire.Digest{})
	})
}

// readChunk reads a chunk of a blob. One that is not what it was is given to nobody, nor is any other of its blob.
func (r *Replica) readChunk(b *blob, id wire.Digest) []byte {
	chunk, err := b.read(id)
	if errors.Is(err, fs.ErrClosed) {
		return nil // others were asked for more lately
	}
	if err != nil {
		r.watcher.Check("read a tip for a peer", err)
		r.source.forget(b)
	}
	return chunk
}

// replyManifest serves a snapshot: tips of given rounds, one for each fragment. Without
// rounds it serves for each fragment the newest base that still lets a joiner fold deltas
// on their way. Where there is nothing to give the asker tries
// another snapshot source.
func (r *Replica) replyManifest(handle uint64, at []uint32, tries int) {
	machine, own := r.machine.Rounds(), at == nil
	if m := r.source.fresh(r.policy.Source, r.exec.Elapsed(), machine); m != nil && own {
		r.exec.Serve(handle, func(func() bool) { r.replyBulk(handle, m, wire.Digest{}) })
		return
	}
	wants := core.GivenTips(r.params, machine, at)
	r.exec.Serve(handle, func(gone func() bool) {
		m, err := r.makeManifest(wants, own, gone)
		if own && tries > 1 && outdated(err) {
			r.exec.Post(func(core.Time) { r.replyManifest(handle, at, tries-1) })
			return
		}
		r.replyBulk(handle, m, wire.Digest{})
	})
}

// outdated reports whether what was to be given is not there any more.
func outdated(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, core.ErrOvertaken) || errors.Is(err, core.ErrNothingToGive)
}

// source keeps the chunks of the tips that it handed out recently.
type source struct {
	making  sync.Mutex // one manifest at a time: it takes memory and hashing
	resumes int64      // nothing is folded for others before; under making

	mu       sync.Mutex
	manifest []byte // the last of the node's own choice
	madeAt   int64
	wants    []core.GivenTip // what it was made of
	blobs    []*blob         // the last used last
	set      int             // of the largest manifest
}

// blob is one fragment's tip as joiners take it.
type blob struct {
	fragment int
	first    uint32 // round of its first link
	manifest wire.FragmentManifest
	places   map[wire.Digest]int // of chunks
	bytes    Scrap
}

// size is what it takes, in bytes.
func (b *blob) size() int { return int(b.manifest.Size) }

// read returns one of its chunks.
func (b *blob) read(id wire.Digest) ([]byte, error) {
	i := b.places[id]
	chunk := make([]byte, b.manifest.ChunkLen(i))
	if _, err := b.bytes.ReadAt(chunk, int64(i)*wire.ChunkSize); err != nil {
		return nil, fmt.Errorf("chunk %d of fragment %d round %d: %w", i, b.fragment, b.manifest.Round, err)
	}
	if wire.Sum(chunk) != id {
		return nil, fmt.Errorf("chunk %d of fragment %d round %d: %w", i, b.fragment, b.manifest.Round, errChunk)
	}
	return chunk, nil
}

// errChunk says that the copy of a tip is damaged.
var errChunk = errors.New("it is not what was written: its digest differs")

// fresh is the last manifest, if it is young and the chain leads through it.
func (d *source) fresh(policy SourcePolicy, now int64, machine *rounds.Machine) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.manifest == nil || policy.FreshMs == 0 || now-d.madeAt > policy.FreshMs {
		return nil
	}
	for p, w := range d.wants {
		l, ok := machine.Fragment(p).Link(w.Round)
		if !ok || l.Chain != w.Link().Chain || machine.Fragment(p).Closed() > w.Closed+policy.FreshRounds {
			return nil
		}
	}
	return d.manifest
}

// holds finds the blob of a chunk that a recent manifest named; nil if none did.
func (d *source) holds(id wire.Digest) *blob {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, b := range d.blobs {
		if _, ok := b.places[id]; ok {
			d.touch(i)
			return b
		}
	}
	return nil
}

// forget drops a blob, and the manifest that may name it.
func (d *source) forget(b *blob) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.Index(d.blobs, b); i >= 0 {
		d.manifest = nil
		d.drop(i)
	}
}

// drop drops a blob, under mu. Whoever reads it right now gives nothing.
func (d *source) drop(i int) {
	_ = d.blobs[i].bytes.Close() // what is left of it goes with the process
	d.blobs = slices.Delete(d.blobs, i, i+1)
}

// touch makes a blob the last used one.
func (d *source) touch(i int) {
	b := d.blobs[i]
	d.blobs = append(slices.Delete(d.blobs, i, i+1), b)
}

// makeManifest signs a manifest of what can be given. One of its own choice that was
// made while this one waited serves as well.
func (r *Replica) makeManifest(wants []core.GivenTip, own bool, gone func() bool) ([]byte, error) {
	d, asked := &r.source, r.exec.Elapsed()
	d.making.Lock()
	defer d.making.Unlock()
	if m := d.madeSince(asked); m != nil && own {
		return m, nil
	}
	if !own {
		wants = r.afford(wants)
	}
	m, size, err := r.cutManifest(wants, own, gone)
	d.shrink(r.policy.Source, size)
	if err != nil {
		return nil, err
	}
	signed := wire.EncodeManifest(r.key, r.run, m)
	if own {
		d.mu.Lock()
		d.manifest, d.madeAt, d.wants = signed, r.exec.Elapsed(), wants
		d.mu.Unlock()
	}
	return signed, nil
}

// madeSince is the manifest of its own choice that was made after a moment, or nil.
func (d *source) madeSince(asked int64) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.manifest == nil || d.madeAt <= asked {
		return nil
	}
	return d.manifest
}

// afford leaves out, while the source pauses, what would have to be folded.
func (r *Replica) afford(wants []core.GivenTip) []core.GivenTip {
	if r.exec.Elapsed() >= r.source.resumes {
		return wants
	}
	wants = slices.Clone(wants)
	for p, w := range wants {
		if len(w.Sets) > 0 && (len(w.Links) == 0 || r.source.find(p, w) == nil) {
			wants[p] = core.GivenTip{Closed: w.Closed}
		}
	}
	return wants
}

// cutManifest cuts the tips that can be given into chunks, and returns their size in
// bytes. What the node itself chose must all be there.
func (r *Replica) cutManifest(wants []core.GivenTip, own bool, gone func() bool) (m wire.Manifest, size int, err error) {
	began := r.exec.Elapsed()
	m, err = core.ManifestOf(wants, own, func(p int, w core.GivenTip) (wire.FragmentManifest, error) {
		if gone() {
			return wire.FragmentManifest{}, errGone
		}
		b, err := r.blobOf(p, w)
		if err != nil {
			return wire.FragmentManifest{}, err
		}
		size += b.size()
		return b.manifest, nil
	})
	if slices.ContainsFunc(wants, func(w core.GivenTip) bool { return len(w.Sets) > 0 }) {
		r.source.pause(began, r.exec.Elapsed(), r.policy.Source.Pause)
	}
	return m, size, err
}

var errGone = errors.New("the asker is gone")

// pause begins after what was folded for others from began to now.
func (d *source) pause(began, now, times int64) {
	d.resumes = max(d.resumes, now+times*(now-began))
}

// blobOf returns the chunks of a tip to give, cut now if they are not at hand.
func (r *Replica) blobOf(p int, w core.GivenTip) (*blob, error) {
	if b := r.source.find(p, w); b != nil {
		return b, nil
	}
	tip, err := r.GivenTip(p, w)
	if err != nil {
		return nil, err
	}
	b, err := r.cut(p, tip, w.Links)
	if err != nil {
		return nil, err
	}
	r.source.add(b)
	return b, nil
}

// cut makes the blob of a tip: of a large one in scratch, unless that has no room.
func (r *Replica) cut(p int, tip *outer.Tip, links []outer.Link) (*blob, error) {
	b := &blob{fragment: p, first: links[0].Round, places: map[wire.Digest]int{}}
	fill := func(w io.Writer) (err error) {
		b.manifest, err = core.WriteSnapshot(w, tip, links)
		return err
	}
	err := errInMemory
	if r.scratch != nil && tip.Size() > r.policy.Source.InMemory {
		b.bytes, err = r.scratch.Keep(fill)
		r.watcher.Check("keep a tip for a peer", err)
	}
	if err != nil {
		b.bytes, err = memoryScratch{}.Keep(fill)
	}
	for i, id := range b.manifest.Chunks {
		b.places[id] = i
	}
	return b, err
}

// errInMemory says that something was not kept anywhere yet.
var errInMemory = errors.New("in memory")

// memoryScratch keeps bytes in memory.
type memoryScratch struct{}

// Keep implements Scratch.
func (memoryScratch) Keep(fill func(w io.Writer) error) (Scrap, error) {
	var b bytes.Buffer
	err := fill(&b)
	return memoryScrap{bytes.NewReader(b.Bytes())}, err
}

// memoryScrap is what a memoryScratch keeps. It stays for those who read it.
type memoryScrap struct{ *bytes.Reader }

// Close implements io.Closer.
func (memoryScrap) Close() error { return nil }

// GivenTip is the tip to give, from its base and what was folded since.
func (r *Replica) GivenTip(p int, w core.GivenTip) (*outer.Tip, error) {
	base, err := r.bases.get(p, w.Start)
	if err != nil {
		return nil, err
	}
	return w.Tip(base, func(tip *outer.Tip, set []outer.Delta) (*outer.Tip, error) {
		next, _, err := r.foldSet(p, tip, set)
		return next, err
	})
}

func (d *source) add(b *blob) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.blobs = append(d.blobs, b)
}

// find returns the blob of the same tip and links.
func (d *source) find(p int, w core.GivenTip) *blob {
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

// shrink drops chunks as the policy says. size is the size of the last manifest.
func (d *source) shrink(policy SourcePolicy, size int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set = max(d.set, size)
	bytes := 0
	for _, b := range d.blobs {
		bytes += b.size()
	}
	for len(d.blobs) > 0 && bytes > policy.Sets*d.set {
		bytes -= d.blobs[0].size()
		d.drop(0)
	}
}

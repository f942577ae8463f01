package core

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
	"atoll/tensor/codec"
)

// A snapshot blob is one fragment as a joiner takes it: the encoded tip, then
// the links of the union window up to it (round, chain, state, tokens, end
// round, ids folded). By them the joiner compares chains and knows which deltas
// are in. The tip's length stands first.

// History are the links that a snapshot of a fragment's tip brings: the links of
// the union window up to the round, without some at its beginning. Every snapshot source
// that has closed a few rounds more or less, and holds the window, thus cuts the
// same chunks.
func History(p outer.Params, m *rounds.Machine, fragment int, round uint32) []outer.Link {
	length := p.WindowUnion - min(p.WindowAccept, p.WindowUnion/2)
	return slices.DeleteFunc(m.Fragment(fragment).Links(round), func(l outer.Link) bool {
		return l.Round+length < round
	})
}

// LinkOf is the link to a tip, given the deltas that its round folded, in any order.
func LinkOf(tip *outer.Tip, folded []outer.ID) outer.Link {
	l := outer.Link{Round: tip.Round, Chain: tip.Chain, State: tip.State, Tokens: tip.Tokens, EndRound: tip.EndRound, Folded: slices.Clone(folded)}
	slices.SortFunc(l.Folded, func(a, b outer.ID) int { return bytes.Compare(a[:], b[:]) })
	return l
}

// WriteSnapshot writes the blob of a tip and the links that lead to it, a chunk at a time, and describes it for a
// manifest. Which round is closed is left to the manifest's maker. The round of the tip may have been
// folded for this joiner alone, so that its link does not know the state.
func WriteSnapshot(w io.Writer, tip *outer.Tip, links []outer.Link) (wire.FragmentManifest, error) {
	links = slices.Clone(links)
	links[len(links)-1].State = tip.State
	c := cutter{w: w, chunk: make([]byte, 0, wire.ChunkSize)}
	err := binary.Write(&c, binary.BigEndian, uint64(tip.Size()))
	if err == nil {
		_, err = tip.WriteTo(&c)
	}
	if err == nil {
		_, err = c.Write(encodeLinks(links))
	}
	if err == nil {
		err = c.flush()
	}
	return wire.FragmentManifest{
		Round: tip.Round, Chain: wire.Digest(tip.Chain), State: wire.Digest(tip.State), Size: c.size, Chunks: c.digests,
	}, err
}

// cutter cuts what it is given into chunks, which it hashes and writes.
type cutter struct {
	w       io.Writer
	chunk   []byte // that is not full yet
	digests []wire.Digest
	size    uint64 // of what it was given
}

func (c *cutter) Write(b []byte) (int, error) {
	for left := b; len(left) > 0; {
		n := min(len(left), cap(c.chunk)-len(c.chunk))
		c.chunk, left = append(c.chunk, left[:n]...), left[n:]
		if len(c.chunk) == cap(c.chunk) {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	c.size += uint64(len(b))
	return len(b), nil
}

// flush writes the chunk, unless nothing is in it.
func (c *cutter) flush() error {
	if len(c.chunk) == 0 {
		return nil
	}
	c.digests = append(c.digests, wire.Sum(c.chunk))
	_, err := c.w.Write(c.chunk)
	c.chunk = c.chunk[:0]
	return err
}

// CutSnapshot is WriteSnapshot to memory.
func CutSnapshot(tip *outer.Tip, links []outer.Link) (f wire.FragmentManifest, chunks map[wire.Digest][]byte) {
	var b bytes.Buffer
	f, _ = WriteSnapshot(&b, tip, links) // a buffer takes all
	chunks = map[wire.Digest][]byte{}
	for i, id := range f.Chunks {
		chunks[id] = bytes.Clone(b.Next(f.ChunkLen(i)))
	}
	return f, chunks
}

// PackChunk is a chunk as it travels, and nil for none: nearly all of it are the float32 values of a tip.
func PackChunk(chunk []byte) []byte {
	if chunk == nil {
		return nil
	}
	return codec.Pack(chunk)
}

// ErrUnfit: a snapshot is not what the run's can be, so its source is to blame.
var ErrUnfit = errors.New("the snapshot does not fit this run")

// Assemble puts the chunks of a manifest together: the tip of each fragment, and the
// links that lead to it. What chunk returns is an error of the disk; tips that do
// not fit are ErrUnfit.
func Assemble(m wire.Manifest, plan outer.Plan, params outer.Params, chunk func(wire.Digest) ([]byte, error)) (tips []*outer.Tip, history [][]outer.Link, err error) {
	if len(m.Fragments) != len(plan) {
		return nil, nil, fmt.Errorf("%w: manifest of %v with %d fragments, the run has %d", ErrUnfit, m.Author, len(m.Fragments), len(plan))
	}
	var blob []byte // of one fragment after the other
	for p, f := range m.Fragments {
		blob = slices.Grow(blob[:0], int(min(f.Size, uint64(len(f.Chunks))*wire.ChunkSize)))
		for _, id := range f.Chunks {
			b, err := chunk(id)
			if err != nil {
				return nil, nil, err
			}
			blob = append(blob, b...)
		}
		tip, links, err := DecodeSnapshot(blob, f, plan[p], params)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: fragment %d: %w", ErrUnfit, p, err)
		}
		tips, history = append(tips, tip), append(history, links)
	}
	return tips, history, nil
}

// encodeLinks is what follows the tip in a blob.
func encodeLinks(links []outer.Link) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(links)))
	for _, l := range links {
		b = binary.BigEndian.AppendUint32(b, l.Round)
		b = append(b, l.Chain[:]...)
		b = append(b, l.State[:]...)
		b = binary.BigEndian.AppendUint64(b, l.Tokens)
		b = binary.BigEndian.AppendUint32(b, l.EndRound)
		b = binary.BigEndian.AppendUint32(b, uint32(len(l.Folded)))
		for _, id := range l.Folded {
			b = append(b, id[:]...)
		}
	}
	return b
}

// linkSize is the length of an encoded link without its ids.
const linkSize = 4 + 32 + 32 + 8 + 4 + 4

// maxLinks bounds a snapshot's history: no window is longer.
const maxLinks = outer.MaxWindow + 1

// DecodeSnapshot reads a blob and checks what can be checked without the
// deltas. The tip has the state digest of the manifest, and the chain of every
// link follows from the one before and its ids.
func DecodeSnapshot(b []byte, m wire.FragmentManifest, f outer.Fragment, p outer.Params) (*outer.Tip, []outer.Link, error) {
	if len(b) < 8 {
		return nil, nil, fmt.Errorf("snapshot: %d bytes are too few", len(b))
	}
	n := binary.BigEndian.Uint64(b)
	if n > uint64(len(b)-8) {
		return nil, nil, fmt.Errorf("snapshot: tip of %d bytes in a blob of %d", n, len(b))
	}
	tip, err := outer.DecodeTip(b[8:8+n], f, p)
	if err != nil {
		return nil, nil, fmt.Errorf("snapshot: %w", err)
	}
	if wire.Digest(tip.State) != m.State || wire.Digest(tip.Chain) != m.Chain || tip.Round != m.Round {
		return nil, nil, fmt.Errorf("snapshot: tip of round %d has state %x, the manifest says round %d and %v", tip.Round, tip.State[:5], m.Round, m.State)
	}
	links, err := decodeLinks(b[8+n:])
	if err != nil {
		return nil, nil, err
	}
	return tip, links, checkLinks(links, tip)
}

func decodeLinks(b []byte) ([]outer.Link, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("snapshot: history is cut off")
	}
	count := binary.BigEndian.Uint32(b)
	b = b[4:]
	if count == 0 || count > maxLinks || uint64(count)*linkSize > uint64(len(b)) {
		return nil, fmt.Errorf("snapshot: history of %d rounds in %d bytes", count, len(b))
	}
	links := make([]outer.Link, count)
	for i := range links {
		var err error
		if b, err = decodeLink(b, &links[i]); err != nil {
			return nil, err
		}
	}
	if len(b) != 0 {
		return nil, fmt.Errorf("snapshot: %d bytes after the history", len(b))
	}
	return links, nil
}

func decodeLink(b []byte, l *outer.Link) ([]byte, error) {
	if len(b) < linkSize {
		return nil, fmt.Errorf("snapshot: history is cut off")
	}
	l.Round = binary.BigEndian.Uint32(b)
	l.Chain = outer.Digest(b[4:36])
	l.State = outer.Digest(b[36:68])
	l.Tokens = binary.BigEndian.Uint64(b[68:])
	l.EndRound = binary.BigEndian.Uint32(b[76:])
	ids := binary.BigEndian.Uint32(b[80:])
	b = b[linkSize:]
	if uint64(ids)*32 > uint64(len(b)) {
		return nil, fmt.Errorf("snapshot: round %d with %d ids in %d bytes", l.Round, ids, len(b))
	}
	for range ids {
		l.Folded = append(l.Folded, outer.ID(b[:32]))
		b = b[32:]
	}
	return b, nil
}

func checkLinks(links []outer.Link, tip *outer.Tip) error {
	for i, l := range links[1:] {
		prev := links[i]
		if l.Round != prev.Round+1 || outer.ChainDigest(prev.Chain, l.Folded) != l.Chain {
			return fmt.Errorf("snapshot: the chain is broken at round %d", l.Round)
		}
	}
	last := links[len(links)-1]
	if last.Round != tip.Round || last.Chain != tip.Chain || last.State != tip.State || last.Tokens != tip.Tokens || last.EndRound != tip.EndRound {
		return fmt.Errorf("snapshot: the history ends with round %d and chain %x, the tip is of round %d and chain %x", last.Round, last.Chain[:5], tip.Round, tip.Chain[:5])
	}
	return nil
}

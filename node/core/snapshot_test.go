package core_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
	"atoll/tensor"
	"atoll/tensor/codec"
	"pgregory.net/rapid"
)

// tiny is a run of one fragment of three values.
func tiny() (outer.Params, outer.Fragment) {
	p := outertest.Plain(1, 1000, 0)
	views := tensor.NewSlab([]tensor.Spec{{Name: "a", Shape: []int{2}}, {Name: "b", Shape: []int{1}}}).Views
	return p, outer.NewPlan(views, 1)[0]
}

// blob is a snapshot after so many rounds, some of them empty, with its manifest.
func blob(t rapid.TB, rounds int, ids func(round int) int) ([]byte, wire.FragmentManifest, []outer.Link) {
	p, f := tiny()
	tip := outer.Genesis(f, []float32{1, -2, 0.5}, p)
	links := []outer.Link{{Chain: tip.Chain, State: tip.State}}
	for r := 1; r <= rounds; r++ {
		var set []outer.Delta
		for i := range ids(r) {
			set = append(set, outer.Delta{ID: outer.ID{byte(r), byte(i)}, Round: uint32(r), Base: uint32(r - 1), Steps: 1, Tokens: 30})
		}
		links = append(links, outer.NextLink(p, links[r-1], set))
	}
	last := &links[rounds]
	b := tip.Encode()
	copy(b[8:], binary.LittleEndian.AppendUint32(nil, last.Round))
	copy(b[12:], binary.LittleEndian.AppendUint32(nil, last.EndRound))
	copy(b[16:], binary.LittleEndian.AppendUint64(nil, last.Tokens))
	copy(b[24:], last.Chain[:])
	decoded, err := outer.DecodeTip(b, f, p)
	if err != nil {
		t.Fatal(err)
	}
	last.State = decoded.State
	m := wire.FragmentManifest{Round: last.Round, Closed: last.Round, Chain: wire.Digest(last.Chain), State: wire.Digest(last.State)}
	return core.EncodeSnapshot(b, links), m, links
}

func oneID(int) int { return 1 }

func TestSnapshotRoundTrip(t *testing.T) {
	p, f := tiny()
	rapid.Check(t, func(t *rapid.T) {
		b, m, links := blob(t, rapid.IntRange(0, 40).Draw(t, "rounds"), func(int) int {
			return rapid.IntRange(0, 3).Draw(t, "ids")
		})
		tip, got, err := core.DecodeSnapshot(b, m, f, p)
		if err != nil {
			t.Fatal(err)
		}
		if tip.Round != m.Round || len(got) != len(links) || !bytes.Equal(core.EncodeSnapshot(tip.Encode(), got), b) {
			t.Fatalf("round %d with %d links came back as round %d with %d", m.Round, len(links), tip.Round, len(got))
		}
	})
}

// What is cut into chunks is put together again. What the disk lacks is no fault of the
// snapshot source; what does not fit the run is.
func TestAssemble(t *testing.T) {
	p, f := tiny()
	b, m, links := blob(t, 12, func(int) int { return 2 })
	tip, _, err := core.DecodeSnapshot(b, m, f, p)
	if err != nil {
		t.Fatal(err)
	}
	links[len(links)-1].State = outer.Digest{} // of a round that was not folded here
	cut, chunks := core.CutSnapshot(tip, links)
	links[len(links)-1].State = tip.State // it is given the tip's
	errDisk := errors.New("not on disk")
	assemble := func(fragments ...wire.FragmentManifest) ([]*outer.Tip, [][]outer.Link, error) {
		return core.Assemble(wire.Manifest{Fragments: fragments}, outer.Plan{f}, p, func(id wire.Digest) ([]byte, error) {
			if c, ok := chunks[id]; ok {
				return c, nil
			}
			return nil, errDisk
		})
	}
	tips, history, err := assemble(cut)
	if err != nil || tips[0].State != tip.State || !reflect.DeepEqual(history, [][]outer.Link{links}) {
		t.Fatalf("came back as %v with %v, %v", tips, history, err)
	}
	if _, _, err := assemble(cut, cut); !errors.Is(err, core.ErrUnfit) {
		t.Errorf("two fragments in a run of one: %v", err)
	}
	other := cut
	other.State[0] ^= 1
	if _, _, err := assemble(other); !errors.Is(err, core.ErrUnfit) {
		t.Errorf("tips of another state: %v", err)
	}
	clear(chunks)
	if _, _, err := assemble(cut); !errors.Is(err, errDisk) || errors.Is(err, core.ErrUnfit) {
		t.Errorf("without chunks: %v", err)
	}
}

// large is a tip of several chunks.
func large(t *testing.T) (*outer.Tip, []outer.Link) {
	t.Helper()
	f := outer.NewPlan(tensor.NewSlab([]tensor.Spec{{Name: "a", Shape: []int{wire.ChunkSize/2 + 7}}}).Views, 1)[0]
	values := make([]float32, f.Len)
	for i := range values {
		values[i] = float32(i)
	}
	tip := outer.Genesis(f, values, outertest.Plain(1, 1<<40, 0))
	return tip, []outer.Link{core.LinkOf(tip, nil)}
}

// What is written a chunk at a time is the blob, and its chunks are those of the blob.
func TestWriteSnapshot(t *testing.T) {
	tip, links := large(t)
	whole := core.EncodeSnapshot(tip.Encode(), links)
	var b bytes.Buffer
	m, err := core.WriteSnapshot(&b, tip, links)
	if err != nil || !bytes.Equal(b.Bytes(), whole) || m.Size != uint64(len(whole)) || !slices.Equal(m.Chunks, wire.ChunkDigests(whole)) {
		t.Errorf("%d bytes in %d chunks, %v; the blob has %d", m.Size, len(m.Chunks), err, len(whole))
	}
	cut, chunks := core.CutSnapshot(tip, links)
	var joined []byte
	for _, id := range cut.Chunks {
		joined = append(joined, chunks[id]...)
	}
	if !reflect.DeepEqual(cut, m) || !bytes.Equal(joined, whole) {
		t.Error("cut in memory it is another blob")
	}
	for n := range len(m.Chunks) {
		full := &fullAfter{left: n}
		if _, err := core.WriteSnapshot(full, tip, links); !errors.Is(err, errFull) {
			t.Errorf("full after %d chunks: %v", n, err)
		}
	}
}

var errFull = errors.New("full")

// fullAfter has room for so many writes.
type fullAfter struct{ left int }

func (w *fullAfter) Write(b []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

// goldenSnapshot is the encoding of blob(2, oneID): it must never change.
const goldenSnapshot = `
000000000000004c61746f6c6c54000102000000000000003c000000000000002f0ca06a1cfde39c6448c40b0009cbc5
aac459e4a9f3cbb912632ca412ba5bbf00000000000000000000803f000000c00000003f000000030000000000000000
00000000000000000000000000000000000000000000000000000000c784080ed6de1b88b8b132b937723db4d56e5e8a
510d5da1a6e3be048ce687230000000000000000000000000000000000000001bb4fadcb0b8feab0fa97ebafa6321492
ddcdc23a113bedcecd2de6598c8319930000000000000000000000000000000000000000000000000000000000000000
000000000000001e00000000000000010100000000000000000000000000000000000000000000000000000000000000
000000022f0ca06a1cfde39c6448c40b0009cbc5aac459e4a9f3cbb912632ca412ba5bbf1f7a87f50c1087e1d47f878d
845ccd7e658007d1937a163b4d216bb15844496e000000000000003c0000000000000001020000000000000000000000
0000000000000000000000000000000000000000`

func TestSnapshotGolden(t *testing.T) {
	b, _, _ := blob(t, 2, oneID)
	if got := hex.EncodeToString(b); got != strings.ReplaceAll(goldenSnapshot, "\n", "") {
		t.Fatalf("encoded as\n%s", got)
	}
}

// linkSize is the length of a link without ids.
const linkSize = 84

// Every cut and every flipped bit that matters is noticed: the manifest names the
// tip, and the chain each id.
func TestSnapshotDamage(t *testing.T) {
	p, f := tiny()
	b, m, links := blob(t, 3, oneID)
	for n := range b {
		if _, _, err := core.DecodeSnapshot(b[:n], m, f, p); err == nil {
			t.Fatalf("took the first %d of %d bytes", n, len(b))
		}
	}
	if _, _, err := core.DecodeSnapshot(append(bytes.Clone(b), 0), m, f, p); err == nil {
		t.Fatal("took a byte too many")
	}
	first := len(b) - len(links)*linkSize - 3*32 // where the links begin
	for i := range b {
		c := bytes.Clone(b)
		c[i] ^= 0x10
		_, _, err := core.DecodeSnapshot(c, m, f, p)
		inLink := i - first // the first link is of genesis and has no ids
		if i >= first+linkSize {
			inLink = (i - first - linkSize) % (linkSize + 32)
		}
		checked := inLink < 36 || inLink >= 80 // round, chain, ids; not state, tokens and end of older rounds
		if err == nil && (i < first || checked || i >= len(b)-linkSize-32) {
			t.Errorf("took a flipped bit in byte %d (%d of a link)", i, inLink)
		}
	}
}

// Lengths that promise more than there is are refused before anything is allocated.
func TestSnapshotLengths(t *testing.T) {
	p, f := tiny()
	b, m, links := blob(t, 1, oneID)
	tip := int(binary.BigEndian.Uint64(b))
	for what, at := range map[string]int{"tip": 0, "links": 8 + tip, "ids": 8 + tip + 4 + linkSize - 4} {
		c := bytes.Clone(b)
		for i := range 4 {
			c[at+i] = 0xff
		}
		allocs := testing.AllocsPerRun(1, func() {
			if _, _, err := core.DecodeSnapshot(c, m, f, p); err == nil {
				t.Errorf("took a length of %s that does not fit", what)
			}
		})
		if allocs > 40 {
			t.Errorf("length of %s: %.0f allocations", what, allocs)
		}
	}
	empty := append(bytes.Clone(b[:8+tip]), 0, 0, 0, 0)
	if _, _, err := core.DecodeSnapshot(empty, m, f, p); err == nil {
		t.Error("took a snapshot without history")
	}
	if n := len(links); n != 2 {
		t.Fatalf("%d links", n)
	}
}

// A snapshot is of the fragment, round, chain and state that the manifest says.
func TestSnapshotAgainstManifest(t *testing.T) {
	p, f := tiny()
	b, m, _ := blob(t, 2, oneID)
	for what, change := range map[string]func(*wire.FragmentManifest){
		"round": func(m *wire.FragmentManifest) { m.Round++ },
		"chain": func(m *wire.FragmentManifest) { m.Chain[0]++ },
		"state": func(m *wire.FragmentManifest) { m.State[0]++ },
	} {
		other := m
		change(&other)
		if _, _, err := core.DecodeSnapshot(b, other, f, p); err == nil {
			t.Errorf("took a snapshot of another %s", what)
		}
	}
	p.Mu = 0.9
	if _, _, err := core.DecodeSnapshot(b, m, f, p); err == nil {
		t.Error("took a tip without the momentum that the run has")
	}
}

// Whatever is in a chunk, it fits into an answer when it is packed, and comes back.
func TestPackedChunksFit(t *testing.T) {
	noise := make([]byte, wire.ChunkSize)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for name, chunk := range map[string][]byte{"noise": noise, "one byte": {1}, "zeros": make([]byte, wire.ChunkSize)} {
		packed := core.PackChunk(chunk)
		if n := len(wire.Found(packed)); n > wire.GetChunk.MaxResponse() {
			t.Errorf("%s: an answer of %d bytes, at most %d are read", name, n, wire.GetChunk.MaxResponse())
		}
		if got, err := codec.Unpack(packed, len(chunk)); err != nil || !bytes.Equal(got, chunk) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if core.PackChunk(nil) != nil {
		t.Error("no chunk is packed to one")
	}
}

func FuzzDecodeSnapshot(f *testing.F) {
	p, fragment := tiny()
	for _, rounds := range []int{0, 1, 5} {
		b, _, _ := blob(f, rounds, oneID)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m wire.FragmentManifest
		if len(b) > 8 { // let it past the manifest, which a fuzzer cannot guess
			n := min(binary.BigEndian.Uint64(b), uint64(len(b)-8))
			if tip, err := outer.DecodeTip(b[8:8+n], fragment, p); err == nil {
				m = wire.FragmentManifest{Round: tip.Round, Chain: wire.Digest(tip.Chain), State: wire.Digest(tip.State)}
			}
		}
		tip, links, err := core.DecodeSnapshot(b, m, fragment, p)
		if err == nil && !bytes.Equal(core.EncodeSnapshot(tip.Encode(), links), b) {
			t.Fatal("an accepted blob is not what its content encodes to")
		}
	})
}

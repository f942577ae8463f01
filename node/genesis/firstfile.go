package genesis

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/safetensors"
)

// FirstFile is where a node's folder keeps the given initial values of its run.
const FirstFile = "first.safetensors"

// ErrNoFirst says that a folder has no initial values.
var ErrNoFirst = errors.New("the run's initial values are not there")

// LoadTensors reads the tensors of a run from a safetensors file, or from the folder of a model. The
// error names the first tensor that is not there or of another shape.
func (g Genesis) LoadTensors(path string) (*tensor.Slab, error) {
	m, err := safetensors.OpenModel(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	places := make(map[string]safetensors.Tensor, len(m.Tensors))
	for _, t := range m.Tensors {
		places[t.Name] = t
	}
	s := g.NewSlab()
	for _, v := range s.Views {
		t, found := places[v.Name]
		if !found {
			return nil, fmt.Errorf("%s: tensor %q of the run, of shape %v, is not there", path, v.Name, v.Shape)
		}
		if !slices.Equal(t.Shape, v.Shape) && len(t.Shape)+len(v.Shape) > 0 {
			return nil, fmt.Errorf("%s: tensor %q has the shape %v, the run's has %v: it is of another model", path, v.Name, t.Shape, v.Shape)
		}
		if err := m.Read(t, s.Of(v)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// CheckFirst makes sure that values are those that the run begins with.
func (g Genesis) CheckFirst(values []float32) (First, error) {
	first := CutFirst(values)
	if got := first.Digests(); !slices.Equal(got, g.First) {
		return first, fmt.Errorf("the values are not those that the run begins with (digests %.16q, the run has %.16q): use the very file that the run was made from", got, g.First)
	}
	return first, nil
}

// FirstPart is a file of initial values that is being filled.
type FirstPart struct {
	path  string
	file  *os.File
	begin int64
	first First
}

// OpenFirst opens what a folder has of the initial values: chunks may be missing, until Finish.
func (g Genesis) OpenFirst(dir string, list [][]byte) (*FirstPart, error) {
	first, err := ReadFirst(list, g.Params())
	if err != nil {
		return nil, err
	}
	head, err := safetensors.Header(g.Views(), nil, 8)
	if err != nil {
		return nil, err
	}
	p := &FirstPart{path: filepath.Join(dir, FirstFile), begin: int64(len(head)), first: first}
	if p.file, err = os.OpenFile(p.path+".part", os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	if _, err = p.file.WriteAt(head, 0); err == nil {
		err = p.file.Truncate(p.begin + 4*int64(first.Values))
	}
	if err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	return p, nil
}

// Missing are the chunks that are not there yet, with their digests.
func (p *FirstPart) Missing() (chunks []int, err error) {
	for i, want := range p.first.Chunks {
		b, err := p.first.read(p.file, p.begin, i)
		if err != nil {
			return nil, err
		}
		if wire.Sum(b) != want {
			chunks = append(chunks, i)
		}
	}
	return chunks, nil
}

// read reads a chunk of a file whose values begin at a byte.
func (f First) read(file io.ReaderAt, begin int64, chunk int) ([]byte, error) {
	from, to := f.Span(chunk)
	b := make([]byte, 4*(to-from))
	_, err := file.ReadAt(b, begin+4*int64(from))
	return b, err
}

// Digest is that of a chunk, and Chunks how many there are.
func (p *FirstPart) Digest(chunk int) wire.Digest { return p.first.Chunks[chunk] }
func (p *FirstPart) Chunks() int                  { return len(p.first.Chunks) }

// Size is how many bytes a chunk has.
func (p *FirstPart) Size(chunk int) int {
	from, to := p.first.Span(chunk)
	return 4 * (to - from)
}

// Put takes a chunk, if it is what its digest says.
func (p *FirstPart) Put(chunk int, b []byte) error {
	if len(b) != p.Size(chunk) || wire.Sum(b) != p.first.Chunks[chunk] {
		return fmt.Errorf("chunk %d of the initial values is not what its digest %v says", chunk, p.first.Chunks[chunk])
	}
	from, _ := p.first.Span(chunk)
	_, err := p.file.WriteAt(b, p.begin+4*int64(from))
	return err
}

// Finish says that all chunks are there. Close leaves what is there for another time.
func (p *FirstPart) Finish() error {
	if err := errors.Join(p.file.Sync(), p.file.Close()); err != nil {
		return err
	}
	return os.Rename(p.path+".part", p.path)
}

// SetFirstAside makes initial values that are damaged a part that OpenFirst goes on with.
func SetFirstAside(dir string) error {
	path := filepath.Join(dir, FirstFile)
	return os.Rename(path, path+".part")
}

// Close implements io.Closer.
func (p *FirstPart) Close() error { return p.file.Close() }

// FirstValues are the checked initial values of a folder, for those who ask for chunks.
type FirstValues struct {
	path   string
	begin  int64
	first  First
	places map[wire.Digest]int // of chunks of values; those of the list from -1 on downwards
}

// LoadFirst reads and checks the initial values of a folder. It wraps ErrNoFirst where there are
// none.
func (g Genesis) LoadFirst(dir string) (*FirstValues, *tensor.Slab, error) {
	path := filepath.Join(dir, FirstFile)
	s, err := g.LoadTensors(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%w: %s", ErrNoFirst, path)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("initial values: %w", err)
	}
	first, err := g.CheckFirst(s.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	head, err := safetensors.Header(g.Views(), nil, 8)
	if err != nil {
		return nil, nil, err
	}
	v := &FirstValues{path: path, begin: int64(len(head)), first: first, places: map[wire.Digest]int{}}
	for i, d := range first.Chunks {
		v.places[d] = i
	}
	for i, d := range g.FirstDigests() {
		v.places[d] = -1 - i
	}
	return v, s, nil
}

// TipsIn are the tips of round 0 of a run whose folder that is.
func (g Genesis) TipsIn(dir string) ([]*outer.Tip, error) {
	if !g.Given() {
		return g.Tips(), nil
	}
	_, values, err := g.LoadFirst(dir)
	if err != nil {
		return nil, err
	}
	return g.TipsOf(values.Data), nil
}

// SaveFirst writes initial values to a folder.
func (g Genesis) SaveFirst(dir string, s *tensor.Slab) (err error) {
	path := filepath.Join(dir, FirstFile)
	f, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	err = safetensors.Write(f, s, nil)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// Chunk is the chunk with a digest, nil if there is none. Any goroutine may ask.
func (v *FirstValues) Chunk(d wire.Digest) []byte {
	if v == nil {
		return nil
	}
	i, known := v.places[d]
	switch {
	case !known:
		return nil
	case i < 0:
		return v.first.List[-1-i]
	}
	f, err := os.Open(v.path)
	if err != nil {
		return nil
	}
	defer f.Close()
	b, err := v.first.read(f, v.begin, i)
	if err != nil && !errors.Is(err, io.EOF) || wire.Sum(b) != d {
		return nil // the disk has damaged it: others have it
	}
	return b
}

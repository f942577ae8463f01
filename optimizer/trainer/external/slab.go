package external

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"atoll/optimizer"
	"atoll/tensor"
	"atoll/tensor/safetensors"
)

// slab is the file of values that node and learner map, in the format of safetensors.
type slab struct {
	path   string
	begin  int64 // byte at which value 0 stands
	mapped []byte
	values []float32
	file   *os.File // one in memory is there as long as it is open
}

// slabFile is the name of a slab on the disk.
const slabFile = "slab.safetensors"

// slabAlign is where values may begin: pages of every system in use have so many bytes at most.
const slabAlign = 64 << 10

// newSlab makes the file anew, all values 0, and maps it. The slab of a learner that the node starts is in memory where the
// system has such files: a learner may change all values in each step, and the system would write each change of a file
// on the disk there. A script that attaches may be in another container, which shares a folder and nothing else.
func newSlab(cfg Config) (*slab, error) {
	path := filepath.Join(cfg.Dir, slabFile)
	// A script that outlived an earlier node may still map the file of before: that one stays as it is.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; end the training script that still has it open", err)
	}
	f, path, remedy, err := makeSlabFile(cfg, path)
	if err != nil {
		return nil, err
	}
	s, err := mapSlab(f, path, remedy, cfg.Views)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s, nil
}

// What to do where a slab has no room.
const (
	diskRemedy   = "free some room, or use a folder on a larger disk"
	memoryRemedy = "end other programs, or use a machine with more memory"
)

// makeSlabFile makes an empty file in memory, or at a path of the disk. It says at which path it is, and what to do if it has no room.
func makeSlabFile(cfg Config, disk string) (f *os.File, path, remedy string, err error) {
	if cfg.Command.Attach == "" {
		if f, path, err := memoryFile(slabFile); err == nil {
			return f, path, memoryRemedy, nil
		}
	}
	f, err = os.Create(disk)
	return f, disk, diskRemedy, err
}

// mapSlab gives an empty file the values of a layout, all 0, and maps it. Learners open it by its path. remedy is what to do if there
// is no room.
func mapSlab(f *os.File, path, remedy string, views []tensor.View) (*slab, error) {
	n := 0
	for _, v := range views {
		n += v.Len
	}
	head, err := safetensors.Header(views, nil, slabAlign)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(head); err != nil {
		return nil, err
	}
	s := &slab{path: path, begin: int64(len(head)), file: f}
	size := s.begin + 4*int64(n)
	if err := fill(f, 4*int64(n)); err != nil {
		return nil, fmt.Errorf("%d MiB for the values that learner and node share, in %s: %w: %s", size>>20, path, err, remedy)
	}
	if s.mapped, err = mapFile(f, size); err != nil {
		return nil, fmt.Errorf("map %d MiB of %s: %w", size>>20, path, err)
	}
	if n > 0 {
		s.values = unsafe.Slice((*float32)(unsafe.Pointer(&s.mapped[s.begin])), n)
	}
	return s, nil
}

// fill writes so many zeros. A file with holes would take no room yet, and a full disk would
// end the process that writes into its mapping.
func fill(f *os.File, n int64) error {
	zeros := make([]byte, min(n, 1<<20))
	for ; n > 0; n -= int64(len(zeros)) {
		if _, err := f.Write(zeros[:min(n, int64(len(zeros)))]); err != nil {
			return err
		}
	}
	return nil
}

func (s *slab) close() error {
	s.values = nil
	return errors.Join(unmapFile(s.mapped), s.file.Close())
}

// MapFile maps a whole file, as a learner does with its slab. It stays mapped until the process
// ends.
func MapFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return mapFile(f, info.Size())
}

// whole are all values, as a piece.
func (s *slab) whole() []optimizer.Span { return []optimizer.Span{{Len: len(s.values)}} }

// LayoutDigest names the tensors that a learner trains, in their order.
func LayoutDigest(views []tensor.View) string {
	h := sha256.New()
	for _, v := range views {
		fmt.Fprint(h, v.Name)
		for _, d := range v.Shape {
			fmt.Fprintf(h, " %d", d)
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil))
}

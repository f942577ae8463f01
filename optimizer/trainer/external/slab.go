package external

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"unsafe"

	"atoll/tensor"
)

// slab is the file of values that node and learner map, in the format of safetensors.
type slab struct {
	path   string
	begin  int64 // byte at which value 0 stands
	mapped []byte
	values []float32
}

// slabAlign is where values may begin: pages of every system in use have so many bytes at most.
const slabAlign = 64 << 10

// newSlab makes the file anew, all values 0, and maps it.
func newSlab(path string, views []tensor.View) (*slab, error) {
	n := 0
	for _, v := range views {
		n += v.Len
	}
	head, err := header(views)
	if err != nil {
		return nil, err
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Write(head); err != nil {
		return nil, err
	}
	s := &slab{path: path, begin: int64(len(head))}
	size := s.begin + 4*int64(n)
	if err := f.Truncate(size); err != nil {
		return nil, err
	}
	if s.mapped, err = mapFile(f, size); err != nil {
		return nil, fmt.Errorf("map %d MiB of %s: %w", size>>20, path, err)
	}
	if n > 0 {
		s.values = unsafe.Slice((*float32)(unsafe.Pointer(&s.mapped[s.begin])), n)
	}
	return s, nil
}

// header is what a safetensors file begins with: its length in 8 bytes, then JSON, filled up
// with blanks so that values are aligned. The format is that of
// https://github.com/huggingface/safetensors.
func header(views []tensor.View) ([]byte, error) {
	type entry struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	entries := map[string]entry{}
	for _, v := range views {
		shape := v.Shape
		if shape == nil {
			shape = []int{}
		}
		entries[v.Name] = entry{"F32", shape, [2]int{4 * v.Offset, 4 * (v.Offset + v.Len)}}
	}
	b, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	for (8+len(b))%slabAlign != 0 {
		b = append(b, ' ')
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(b))), b...), nil
}

func (s *slab) close() error {
	s.values = nil
	return unmapFile(s.mapped)
}

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

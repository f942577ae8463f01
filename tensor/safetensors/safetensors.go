// Package safetensors reads and writes the files in which models are shared: a header that
// names tensors, and their values. See https://github.com/huggingface/safetensors. It chooses
// the files of a folder, and the tensors of a model, as transformers does.
//
// Nothing of a file is trusted: a header that does not fit its file is refused by name.
package safetensors

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"atoll/tensor"
)

// Limits of a file.
const (
	// maxHeader is the one of the format's own library: more tensors than any model has.
	maxHeader = 100 << 20
	// maxDims and maxElements keep products of dimensions inside an int64.
	maxDims     = 16
	maxElements = 1 << 40
)

// Tensor is one tensor of a file.
type Tensor struct {
	Name  string
	DType string // F32, BF16, F16, ...
	Shape []int
	Begin int64 // bytes from the first value of the file
	End   int64
	file  *File
}

// Len is how many values the tensor has.
func (t Tensor) Len() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// File is an open file: its tensors, and where values begin.
type File struct {
	Tensors []Tensor // by Begin
	name    string   // of the file, where it has one
	begin   int64
	data    io.ReaderAt
}

// Open reads the header of a file of so many bytes. The error names what is wrong.
func Open(r io.ReaderAt, size int64) (*File, error) {
	var head [8]byte
	if size < int64(len(head)) {
		return nil, fmt.Errorf("%d bytes are no file of tensors: fetch it anew", size)
	}
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, fmt.Errorf("%d bytes are no file of tensors: %w", size, err)
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("the header says that it has %d bytes, the file has %d: it is cut off, or of another format, such as a pointer of git-lfs", n, size)
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, 8); err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	f := &File{begin: 8 + int64(n), data: r}
	return f, f.parse(b, size-f.begin)
}

// OpenFile opens the file of a name. Close closes it.
func OpenFile(name string) (*File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if info.IsDir() {
		return nil, errors.Join(fmt.Errorf("%s is a folder, and a file of tensors belongs there: fetch the model anew", name), f.Close())
	}
	file, err := Open(f, info.Size())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	file.name = name
	return file, nil
}

// Close closes what OpenFile opened.
func (f *File) Close() error {
	if c, ok := f.data.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// entry is a tensor as the header has it.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// metadataKey is the one key of a header that is no tensor.
const metadataKey = "__metadata__"

func (f *File) parse(header []byte, room int64) error {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(header, &entries); err != nil {
		return fmt.Errorf("the header is no JSON object: %w", err)
	}
	for name, raw := range entries {
		if name == metadataKey {
			continue
		}
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("tensor %.200q: %w", name, err)
		}
		t := Tensor{Name: name, DType: e.DType, Shape: e.Shape, Begin: e.Offsets[0], End: e.Offsets[1], file: f}
		if err := t.check(room); err != nil {
			return err
		}
		f.Tensors = append(f.Tensors, t)
	}
	slices.SortFunc(f.Tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), strings.Compare(a.Name, b.Name))
	})
	at := int64(0)
	for _, t := range f.Tensors { // as the format's own library wants them
		if t.Begin != at {
			return fmt.Errorf("tensor %.200q begins at byte %d of the values, and those before it end at %d: the file is damaged", t.Name, t.Begin, at)
		}
		at = t.End
	}
	if at != room {
		return fmt.Errorf("the header has %d bytes of values, the file %d: it is cut off or damaged", at, room)
	}
	return nil
}

// widths are the bytes of a value, by type, of those that can be read as float32.
var widths = map[string]int64{"F32": 4, "BF16": 2, "F16": 2, "F64": 8}

// Width is the bytes of a value of a type, 0 of one that cannot be read as float32.
func Width(dtype string) int64 { return widths[dtype] }

func (t Tensor) check(room int64) error {
	if len(t.Shape) > maxDims {
		return fmt.Errorf("tensor %.200q has %d dimensions; the limit is %d", t.Name, len(t.Shape), maxDims)
	}
	n := int64(1)
	for _, d := range t.Shape {
		if d < 0 || d > 0 && n > maxElements/int64(d) {
			return fmt.Errorf("tensor %.200q has the shape %v; at most %d values", t.Name, t.Shape, int64(maxElements))
		}
		n *= int64(d)
	}
	if t.Begin < 0 || t.End < t.Begin || t.End > room {
		return fmt.Errorf("tensor %.200q is at %d to %d of %d bytes: the file is cut off or damaged", t.Name, t.Begin, t.End, room)
	}
	if w, known := widths[t.DType]; known && t.End-t.Begin != n*w {
		return fmt.Errorf("tensor %.200q of shape %v in %s has %d bytes; it needs %d", t.Name, t.Shape, t.DType, t.End-t.Begin, n*w)
	}
	return nil
}

// readBytes is how much is read at a time: a whole number of values of every type.
const readBytes = 1 << 20

// Read reads the values of a tensor as float32 into dst [t.Len()]. Float64 is rounded.
func (f *File) Read(t Tensor, dst []float32) error {
	w, known := widths[t.DType]
	if !known {
		return fmt.Errorf("tensor %.200q is in %s; use F32, BF16, F16 or F64", t.Name, t.DType)
	}
	if int64(len(dst))*w != t.End-t.Begin {
		return fmt.Errorf("tensor %.200q has %d bytes for %d values", t.Name, t.End-t.Begin, len(dst))
	}
	r := io.NewSectionReader(f.data, f.begin+t.Begin, t.End-t.Begin)
	buffer := make([]byte, min(readBytes, t.End-t.Begin))
	for len(dst) > 0 {
		n := min(int64(len(buffer)), int64(len(dst))*w)
		if _, err := io.ReadFull(r, buffer[:n]); err != nil {
			return fmt.Errorf("read tensor %.200q: %w", t.Name, err)
		}
		dst = dst[decode(t.DType, buffer[:n], dst):]
	}
	return nil
}

// decode reads values of a type into dst, and returns how many.
func decode(dtype string, b []byte, dst []float32) (n int) {
	switch dtype {
	case "F32":
		for ; 4*n < len(b); n++ {
			dst[n] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*n:]))
		}
	case "BF16":
		for ; 2*n < len(b); n++ {
			dst[n] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*n:])) << 16)
		}
	case "F16":
		for ; 2*n < len(b); n++ {
			dst[n] = half(binary.LittleEndian.Uint16(b[2*n:]))
		}
	case "F64":
		for ; 8*n < len(b); n++ {
			dst[n] = float32(math.Float64frombits(binary.LittleEndian.Uint64(b[8*n:])))
		}
	}
	return n
}

// half is an IEEE 754 binary16 as float32, exactly.
func half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&0x3ff)
	switch exponent {
	case 0:
		x := float32(fraction) * 0x1p-24
		return math.Float32frombits(math.Float32bits(x) | sign)
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// cast is a tensor and the type that it is written in.
type cast struct {
	tensor.View
	dtype string
}

// Header is what a file of float32 tensors begins with whose values follow one another as the
// views say. It is filled up with blanks to a multiple of align bytes, so that the file can be
// mapped.
func Header(views []tensor.View, metadata map[string]string, align int) ([]byte, error) {
	return header(as(views, nil), metadata, align)
}

// as gives each view its type; nil stands for F32.
func as(views []tensor.View, dtypes []string) []cast {
	list := make([]cast, len(views))
	for i, v := range views {
		list[i] = cast{v, "F32"}
		if dtypes != nil {
			list[i].dtype = dtypes[i]
		}
	}
	return list
}

func header(list []cast, metadata map[string]string, align int) ([]byte, error) {
	entries, at := map[string]any{}, int64(0)
	if len(metadata) > 0 {
		entries[metadataKey] = metadata
	}
	for _, v := range list {
		shape := v.Shape
		if shape == nil {
			shape = []int{}
		}
		if _, twice := entries[v.Name]; twice {
			return nil, fmt.Errorf("two tensors are named %.200q", v.Name)
		}
		end := at + Width(v.dtype)*int64(v.Len)
		entries[v.Name] = entry{v.dtype, shape, [2]int64{at, end}}
		at = end
	}
	b, err := json.Marshal(entries)
	if err != nil {
		return nil, err
	}
	for align > 0 && (8+len(b))%align != 0 {
		b = append(b, ' ')
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(b))), b...), nil
}

// Write writes a file of float32 tensors.
func Write(w io.Writer, s *tensor.Slab, metadata map[string]string) error {
	return WriteAs(w, s, nil, metadata)
}

// WriteAs writes a file of tensors, each in the type of its place in dtypes; nil stands for F32. Values are rounded to the nearest, of
// two to the even one. The error names the first that is too large.
func WriteAs(w io.Writer, s *tensor.Slab, dtypes []string, metadata map[string]string) error {
	list := as(s.Views, dtypes)
	slices.SortStableFunc(list, func(a, b cast) int { return cmp.Compare(Width(b.dtype), Width(a.dtype)) }) // each at a multiple of its width
	b, err := header(list, metadata, 8)
	for _, t := range list {
		for values := s.Of(t.View); len(values) > 0 && err == nil; {
			if _, err = w.Write(b); err != nil {
				return err
			}
			n := min(readBytes/8, len(values))
			if b, err = encode(b[:0], t.dtype, values[:n]); err != nil {
				return fmt.Errorf("tensor %.200q %w", t.Name, err)
			}
			values = values[n:]
		}
	}
	if err == nil {
		_, err = w.Write(b)
	}
	return err
}

// encode adds values in a type to b.
func encode(b []byte, dtype string, values []float32) ([]byte, error) {
	for _, x := range values {
		bits, infinite := math.Float32bits(x), false
		switch dtype {
		case "F32":
			b = binary.LittleEndian.AppendUint32(b, bits)
		case "F64":
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(x)))
		case "BF16":
			h := uint16((bits + 0x7fff + bits>>16&1) >> 16)
			if x != x {
				h = 0x7fc0
			}
			b, infinite = binary.LittleEndian.AppendUint16(b, h), h&0x7fff == 0x7f80
		case "F16":
			h := toHalf(x)
			b, infinite = binary.LittleEndian.AppendUint16(b, h), h&0x7fff == 0x7c00
		}
		if infinite && !math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("has the value %v, which is too large for %s: export it with --dtype float32", x, dtype)
		}
	}
	return b, nil
}

// toHalf is the IEEE 754 binary16 that is nearest to x, of two the even one.
func toHalf(x float32) uint16 {
	bits := math.Float32bits(x)
	sign, size := uint16(bits>>16&0x8000), bits&0x7fffffff
	switch {
	case x != x:
		return sign | 0x7e00
	case size >= math.Float32bits(65520):
		return sign | 0x7c00
	case size < math.Float32bits(0x1p-14): // a multiple of 2^-24
		return sign | uint16(math.RoundToEven(math.Abs(float64(x))*0x1p24))
	}
	return sign | uint16((size+0xfff+size>>13&1)>>13-112<<10)
}

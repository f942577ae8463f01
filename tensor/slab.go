package tensor

import "fmt"

// Spec names a tensor and its shape, outermost dimension first. A nil shape is a
// scalar.
type Spec struct {
	Name  string
	Shape []int
}

// View is a named window of a slab: Len = product of Shape values from Offset.
type View struct {
	Name        string
	Shape       []int
	Offset, Len int
}

// Slab is one flat allocation that holds several tensors back to back, without
// padding, in the order of Views. Parameters, gradients and optimizer state of a
// model share one layout, so that element-wise work is one loop over Data.
type Slab struct {
	Data  []float32
	Views []View
	index map[string]int
}

// NewSlab allocates a zeroed slab for specs, in that order. A repeated name or a
// negative dimension is a programming error and panics.
func NewSlab(specs []Spec) *Slab {
	s := &Slab{Views: make([]View, 0, len(specs)), index: make(map[string]int, len(specs))}
	offset := 0
	for _, spec := range specs {
		if _, dup := s.index[spec.Name]; dup {
			panic(fmt.Sprintf("tensor: NewSlab: two tensors are named %q", spec.Name))
		}
		n := elements(spec)
		s.index[spec.Name] = len(s.Views)
		shape := append([]int(nil), spec.Shape...)
		s.Views = append(s.Views, View{Name: spec.Name, Shape: shape, Offset: offset, Len: n})
		offset += n
	}
	s.Data = make([]float32, offset)
	return s
}

// elements is the product of the spec's dimensions.
func elements(spec Spec) int {
	n := 1
	for _, d := range spec.Shape {
		if d < 0 {
			panic(fmt.Sprintf("tensor: NewSlab: tensor %q has the negative dimension %d", spec.Name, d))
		}
		n *= d
	}
	return n
}

// Like allocates a zeroed slab with the views of s: gradients or optimizer state
// for the parameters in s.
func (s *Slab) Like() *Slab {
	return &Slab{Data: make([]float32, len(s.Data)), Views: s.Views, index: s.index}
}

// View finds a view by its tensor's name.
func (s *Slab) View(name string) (View, bool) {
	i, ok := s.index[name]
	if !ok {
		return View{}, false
	}
	return s.Views[i], true
}

// Of returns the values that v names in s; writing to them writes to the slab. v
// may come from another slab of the same layout.
func (s *Slab) Of(v View) []float32 {
	end := v.Offset + v.Len
	return s.Data[v.Offset:end:end]
}

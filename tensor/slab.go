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
	s := &Slab{Views: Layout(specs), index: make(map[string]int, len(specs))}
	end := 0
	for i, v := range s.Views {
		if _, dup := s.index[v.Name]; dup {
			panic(fmt.Sprintf("tensor: NewSlab: two tensors are named %q", v.Name))
		}
		s.index[v.Name] = i
		end = v.Offset + v.Len
	}
	s.Data = Floats(end)
	return s
}

// Layout returns the views of a slab for specs without allocating its values. A
// negative dimension is a programming error and panics.
func Layout(specs []Spec) []View {
	views := make([]View, 0, len(specs))
	offset := 0
	for _, spec := range specs {
		n := elements(spec)
		shape := append([]int(nil), spec.Shape...)
		views = append(views, View{Name: spec.Name, Shape: shape, Offset: offset, Len: n})
		offset += n
	}
	return views
}

// elements is the product of the spec's dimensions.
func elements(spec Spec) int {
	n := 1
	for _, d := range spec.Shape {
		if d < 0 {
			panic(fmt.Sprintf("tensor: Layout: tensor %q has the negative dimension %d", spec.Name, d))
		}
		n *= d
	}
	return n
}

// Like allocates a zeroed slab with the views of s: gradients or optimizer state
// for the parameters in s.
func (s *Slab) Like() *Slab {
	return &Slab{Data: Floats(len(s.Data)), Views: s.Views, index: s.index}
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

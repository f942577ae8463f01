package training

import (
	"io"

	"atoll/optimizer/outer"
	"atoll/tensor"
)

// mostKept is how many bytes of global parameters stay in memory for an evaluation in parts, though the run goes on and has
// others by then: below it a file would cost more time than the memory is worth.
const mostKept = 64 << 20

// Aside keeps what write writes, where it takes no memory.
type Aside func(write func(io.Writer) error) (Scrap, error)

// Scrap is what is kept so, until Close.
type Scrap interface {
	io.ReaderAt
	io.Closer
}

// globals are the values of one moment, all fragments one after the other: in the tips, or aside.
type globals struct {
	plan outer.Plan
	tips []*outer.Tip
	file Scrap
}

// keep puts large values aside. Where that fails the tips stay.
func (a *globals) keep(aside Aside) error {
	size := 0
	for _, tip := range a.tips {
		size += 4 * len(tip.Global)
	}
	if size <= mostKept {
		return nil
	}
	file, err := aside(a.write)
	if err == nil {
		a.file, a.tips = file, nil
	}
	return err
}

// write writes the global parameters of the tips.
func (a *globals) write(w io.Writer) error {
	for _, tip := range a.tips {
		if _, err := w.Write(tensor.Bytes(tip.Global)); err != nil {
			return err
		}
	}
	return nil
}

// fill sets the parameters to them.
func (a *globals) fill(values []float32) error {
	at := int64(0)
	for p, f := range a.plan {
		if a.file == nil {
			f.Scatter(a.tips[p].Global, values)
			continue
		}
		for _, t := range f.Tensors {
			part := tensor.Bytes(values[t.Offset : t.Offset+t.Len])
			if _, err := a.file.ReadAt(part, at); err != nil {
				return err
			}
			at += int64(len(part))
		}
	}
	return nil
}

func (a *globals) close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

package node

import (
	"io"

	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/tensor"
)

// mostKept is how many bytes of global parameters stay in memory for an evaluation in parts, though the run goes on and has
// others by then: below it a file would cost more time than the memory is worth.
const mostKept = 64 << 20

// globals are the values of one moment, all fragments one after the other: in the tips, or in scratch.
type globals struct {
	plan outer.Plan
	tips []*outer.Tip
	file replica.Scrap
}

// keepGlobals keeps the global parameters of tips. Where it cannot write a file it keeps the tips.
func (n *node) keepGlobals(tips []*outer.Tip) *globals {
	a := &globals{plan: n.plan, tips: tips}
	if 4*n.genesis.Params() <= mostKept {
		return a
	}
	file, err := n.store.Scratch(a.write)
	if n.check("put the values of an evaluation aside", err); err == nil {
		a.file, a.tips = file, nil
	}
	return a
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

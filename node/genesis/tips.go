package genesis

import (
	"encoding/binary"
	"fmt"
	"io"

	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// Tips are the tips of round 0 of a run that begins with values from a seed.
func (g Genesis) Tips() []*outer.Tip {
	slab := llama.NewParams(g.Model)
	llama.Init(g.Model, slab, g.Seed)
	return g.TipsOf(slab.Data)
}

// TipsOf are the tips of round 0 of a run that begins with these values [Params()].
func (g Genesis) TipsOf(values []float32) []*outer.Tip {
	return g.Plan().Genesis(values, g.OuterParams())
}

// Global puts the tips of all fragments together into one set of parameters.
func (g Genesis) Global(tips []*outer.Tip) *tensor.Slab {
	slab := g.NewSlab()
	for p, f := range g.Plan() {
		f.Scatter(tips[p].Global, slab.Data)
	}
	return slab
}

// TipStream writes tips one after the other, each with its length before it.
type TipStream []*outer.Tip

// WriteTo implements io.WriterTo.
func (t TipStream) WriteTo(w io.Writer) (written int64, err error) {
	for _, tip := range t {
		n, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(tip.Size())))
		written += int64(n)
		if err != nil {
			return written, err
		}
		values, err := tip.WriteTo(w)
		written += values
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// ReadTips is the inverse of TipStream.
func (g Genesis) ReadTips(b []byte) ([]*outer.Tip, error) {
	var tips []*outer.Tip
	for p, f := range g.Plan() {
		if len(b) < 8 || binary.BigEndian.Uint64(b) > uint64(len(b)-8) {
			return nil, fmt.Errorf("read tips: fragment %d is cut off", p)
		}
		n := binary.BigEndian.Uint64(b)
		tip, err := outer.DecodeTip(b[8:8+n], f, g.OuterParams())
		if err != nil {
			return nil, fmt.Errorf("read tips: fragment %d: %w", p, err)
		}
		tips = append(tips, tip)
		b = b[8+n:]
	}
	return tips, nil
}

// NewSlab allocates the parameters of the run, all 0.
func (g Genesis) NewSlab() *tensor.Slab {
	if g.BuiltIn() {
		return llama.NewParams(g.Model)
	}
	specs := make([]tensor.Spec, len(g.Layout))
	for i, t := range g.Layout {
		specs[i] = tensor.Spec{Name: t.Name, Shape: t.Shape}
	}
	return tensor.NewSlab(specs)
}

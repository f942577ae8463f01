package node

import (
	"encoding/binary"
	"fmt"
	"io"

	"atoll/node/core"
	"atoll/node/status"
	"atoll/optimizer/outer"
)

// serveControl starts the local control API.
func (n *node) serveControl() (err error) {
	n.control, err = status.Serve(n.cfg.Dir, status.Handlers{
		Snapshot: func() (status.Snapshot, bool) { return n.lastStatus(), n.latest.Load() != nil },
		Tips: func() (io.WriterTo, bool) {
			t := n.latestTips.Load()
			if t == nil {
				return nil, false
			}
			return tipStream(*t), true
		},
		Lab: n.lab(),
		Leave: func() {
			n.post(func(core.Time) {
				if n.leaving.IsZero() {
					n.leave()
				}
			})
		},
	})
	return err
}

func (n *node) tipList() []*outer.Tip {
	tips := make([]*outer.Tip, len(n.plan))
	for p := range tips {
		tips[p] = n.machine.Rounds().Tip(p)
	}
	return tips
}

// tipStream writes tips one after the other, each with its length before it.
type tipStream []*outer.Tip

// WriteTo implements io.WriterTo.
func (t tipStream) WriteTo(w io.Writer) (written int64, err error) {
	for _, tip := range t {
		b := tip.Encode()
		n, err := w.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		written += int64(n)
		if err != nil {
			return written, err
		}
		n, err = w.Write(b)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// readTips is the inverse of tipStream.
func readTips(b []byte, g Genesis) ([]*outer.Tip, error) {
	var tips []*outer.Tip
	for p, f := range g.Plan() {
		if len(b) < 8 || binary.BigEndian.Uint64(b) > uint64(len(b)-8) {
			return nil, fmt.Errorf("read tips: fragment %d is cut off", p)
		}
		n := binary.BigEndian.Uint64(b)
		tip, err := outer.DecodeTip(b[8:8+n], f, g.Outer)
		if err != nil {
			return nil, fmt.Errorf("read tips: fragment %d: %w", p, err)
		}
		tips = append(tips, tip)
		b = b[8+n:]
	}
	return tips, nil
}

package node

import (
	"context"
	"time"

	"atoll/node/core"
	"atoll/optimizer/trainer"
)

// evalShare keeps live evaluation to one part in so many of the machine's time:
// it is for watching, and training pays for it.
const evalShare = 10

// evaluation is what the loop knows of live evaluations.
type evaluation struct {
	valBPB    float64 // the newest, bits per byte
	valAt     uint64  // tokens folded by the anchor that it is of
	evaluing  bool    // one is under way
	evalAt    time.Time
	evalPause time.Duration // between two evaluations
}

// evaluate starts a live evaluation of the newest anchor when one is due. It
// runs beside training, on a sample of the held-out text.
func (v *view) evaluate(n *node) {
	tokens := n.machine.View().FoldedTokens()
	if n.cfg.EvalBytes == 0 || v.evaluing || time.Since(v.evalAt) < v.evalPause || tokens == v.valAt && v.valBPB > 0 {
		return
	}
	v.evaluing = true
	tips := n.tipList()
	began := time.Now()
	n.work.goRun(func(ctx context.Context) {
		windows := n.data.HeldOutSample(n.cfg.EvalBytes, n.genesis.Model.Context)
		bpb, err := trainer.BitsPerByte(ctx, n.genesis.Model, n.genesis.Anchor(tips), windows)
		n.post(func(core.Time) {
			v.evaluing, v.evalAt = false, time.Now()
			v.evalPause = max(n.cfg.EvalEvery, evalShare*time.Since(began))
			if err != nil {
				if ctx.Err() == nil {
					n.log.Error("evaluate", "err", err)
				}
				return
			}
			v.valBPB, v.valAt = bpb, tokens
		})
	})
}

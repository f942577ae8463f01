package node

import (
	"io"
	"time"

	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/inspect"
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
			return genesis.TipStream(*t), true
		},
		Members: func() []status.Member { return inspect.MembersOf(n.members) },
		Revoke:  n.publishRevocation,
		Pause: func(on bool) {
			n.post(func(core.Time) {
				n.allowance.Ask(on)
				n.limit(time.Now())
				n.publishStatus()
			})
		},
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
		tips[p] = n.machine.Rounds().Fragment(p).Tip()
	}
	return tips
}

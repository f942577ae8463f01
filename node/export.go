package node

import (
	"context"
	"fmt"
	"path/filepath"

	"atoll/node/core"
	"atoll/node/inspect"
	"atoll/node/status"
)

// exports writes the model of a run to folders of its own as it goes on, for other programs.
type exports struct {
	next    uint64 // tokens folded at which the next one is due
	writing bool
}

// export starts to write the newest global parameters when one is due: each time so many more tokens are
// folded. It runs beside training.
func (e *exports) export(n *node) {
	every := n.cfg.ExportEvery
	if n.cfg.Export == "" || e.writing {
		return
	}
	tokens := n.machine.View().FoldedTokens()
	if e.next == 0 {
		e.next = (tokens/every + 1) * every
	}
	if tokens < e.next {
		return
	}
	e.next, e.writing = (tokens/every+1)*every, true
	tips := n.tipList()
	dir := filepath.Join(n.cfg.Export, fmt.Sprintf("tokens-%d", tokens))
	n.work.goRun(func(context.Context) {
		err := inspect.Export(n.cfg.Dir, n.genesis, dir, n.genesis.Global(tips), tokens, "")
		n.post(func(core.Time) {
			e.writing = false
			if err != nil {
				n.screen.Alarm("not exported", "", err.Error(), "mend that, or use `atoll export "+status.ShellWord(n.cfg.Dir)+" --dtype float32 --out DIR`")
				return
			}
			n.screen.Event("exported", "", dir)
		})
	})
}

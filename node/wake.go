package node

import (
	"fmt"
	"time"
)

// wake tells everybody of a sleep that has just ended, if there was one.
// Connections may be dead without a sign: peers and routers gave them up
// meanwhile, or the machine is in another place.
func (n *node) wake() {
	slept := n.clock.News()
	if slept == 0 {
		return
	}
	n.screen.Event("slept", "", fmt.Sprintf("slept for %v, stopped by a signal or with the machine", slept.Round(time.Second)))
	n.machine.Woke(n.clock.Now())
	n.host.Probe()
}

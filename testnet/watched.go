package testnet

import (
	"atoll/gossip/p2p"
	"atoll/node/status"
	"atoll/node/web"
)

// notifyWatchers shows the world to its watchers.
func (w *world) notifyWatchers() {
	if w.cfg.Watch != nil {
		w.cfg.Watch(w.watched())
	}
}

// watched is the world as its page shows it.
func (w *world) watched() web.World {
	watched := web.World{Link: w.link, Join: w.joinCommand()}
	for _, m := range w.members {
		n := web.Node{Name: m.name()}
		if l := m.newest(); l != nil {
			n.End = l.ending()
			if n.Status = l.last; !l.seen {
				n.Status.Stage = "" // of the process before
			}
		}
		watched.Nodes = append(watched.Nodes, n)
	}
	return watched
}

// ending says how a process ended, "" while it runs.
func (l *life) ending() string {
	switch {
	case l.killed:
		return web.EndKilled
	case !l.ended.IsZero() && l.last.Finished:
		return web.EndDone
	case !l.ended.IsZero():
		return web.EndLeft
	case l.paused:
		return web.EndStopped
	}
	return ""
}

// joinCommand is how a node from outside joins. One in a world that makes links needs one too.
func (w *world) joinCommand() string {
	command := "atoll join LINK me --profile " + p2p.Local
	if w.shaped() {
		command = "atoll testnet-node LINK me --shape rate=none"
	}
	if w.cfg.Data != "" {
		command += " --data " + status.ShellWord(w.cfg.Data)
	}
	return command
}

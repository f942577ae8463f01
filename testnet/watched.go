package testnet

import (
	"strings"

	"atoll/node/status"
	"atoll/node/web"
)

// tellWatchers shows the world to those who watch it.
func (w *world) tellWatchers() {
	if w.cfg.Watch != nil {
		w.cfg.Watch(w.watched())
	}
}

// watched is the world as its page shows it.
func (w *world) watched() web.World {
	watched := web.World{Link: w.link, Flags: w.joinFlags()}
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

// joinFlags are what a node from outside needs beside the link.
func (w *world) joinFlags() string {
	flags := []string{"me", "--profile", localProfile}
	if w.cfg.Data != "" {
		flags = append(flags, "--data", status.ShellWord(w.cfg.Data))
	}
	if len(w.cfg.Link) > 0 {
		flags = append(flags, "--shape", "rate=none")
	}
	return strings.Join(flags, " ")
}

package gossip

// A core is paused while its owner has the node paused. What is cheap goes on: heartbeats, headers,
// the peer list, answers that fit a message. Nothing heavy is asked for, and nothing heavy is
// given: no payloads, no snapshot. The rounds of the node stand still meanwhile, so it is as one
// that sleeps and can be heard. It is brought up to date by repair, or takes a snapshot, when it
// goes on.

// Pause has the core pause, or go on.
func (c *Core) Pause(now Time, on bool) {
	c.at(now)
	if on == c.env.Paused {
		return
	}
	c.env.Paused = on
	if !on {
		return // what waited for it begins with the next tick
	}
	c.repair.pause()
	c.snapshot.pause()
	c.fetch.Clear()
	c.serve.Pause()
	c.env.HangUpHeavy()
}

// SetDown changes Config.DownMs: what is asked for at once follows.
func (c *Core) SetDown(bytesPerMs float64) {
	c.env.cfg.DownMs = bytesPerMs
	c.fetch.SetDown(bytesPerMs)
}

// Paused reports whether the core is paused.
func (c *Core) Paused() bool { return c.env.Paused }

// pause ends every session: what is missing is looked for anew later.
func (r *repair) pause() {
	for len(r.sessions) > 0 {
		r.end(r.sessions[0], "ended: this node is paused")
	}
}

// pause goes back to where a snapshot source is chosen, and stays there. What is stored remains, and
// a snapshot whose chunks are all here is put in place.
func (s *snapshot) pause() {
	if s.stage == asking || s.stage == attesting || s.stage == fetching {
		s.stage, s.transfer = choosing, transfer{}
		s.attempt++
		delete(s.tried, s.source) // it did nothing wrong
	}
}

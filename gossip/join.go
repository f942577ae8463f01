package gossip

// FailedSources is how many snapshot sources in a row gave no snapshot that could be put in
// place, nor a part of them.
func (c *Core) FailedSources() int { return c.snapshot.failed }

// JoinPhase describes a snapshot fetch for people, with the share that is
// done, 0 to 1; text is empty if none is under way.
func (c *Core) JoinPhase() (text string, done float64) {
	if c.snapshot.stage == choosing {
		return c.peers.Phase() + ", " + c.snapshot.search(), 0
	}
	return c.snapshot.phase()
}

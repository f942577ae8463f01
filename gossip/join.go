package gossip

// Equal reports whether this node shows the chain and the state of a live peer
// at the rounds of that peer's last beat, in all fragments, and whether there
// is a live peer at all. A peer that does not know its state there yet is taken
// by its chain; this node has to know its own.
func (c *Core) Equal(now Time) (equal, live bool) {
	c.at(now)
	for _, p := range c.peers.list {
		if !c.live(p) || p.refused != "" {
			continue
		}
		live = true
		chain, state, known := c.beats.digestsAt(lagged(p.beat.Closed, p.beat.Lag))
		theirs := p.beat.StateDigest
		if known && chain == p.beat.Chain && !state.IsZero() && (theirs.IsZero() || state == theirs) {
			return true, true
		}
	}
	return false, live
}

// CompareAny starts a repair at once with the live peer that has folded the
// most, as Compare does.
func (c *Core) CompareAny(now Time) {
	c.at(now)
	var best *peer
	for _, p := range c.peers.list {
		if c.usable(p) && c.live(p) && p.refused == "" && (best == nil || p.folded() > best.folded()) {
			best = p
		}
	}
	if best != nil {
		c.Compare(now, best.id)
	}
}

// FailedDonors is how many donors in a row gave no tips that could be put in
// place, nor a part of them.
func (c *Core) FailedDonors() int { return c.snapshot.failed }

// JoinPhase describes a snapshot fetch for people, with the share that is
// done, 0 to 1; text is empty if none is under way.
func (c *Core) JoinPhase() (text string, done float64) {
	if c.snapshot.stage == choosing {
		return c.roster.phase() + ", " + c.snapshot.search(), 0
	}
	return c.snapshot.phase()
}

package mutants

// Mutant is a planted bug: edits of the source of the cores.
type Mutant struct {
	Name  string
	Trial string // the trial that finds it soonest
	Edits []Edit
}

// Edit replaces a piece of code of a function, wherever the function stands and
// however it is laid out.
type Edit struct {
	// In names a function, Receiver.method, or a constant of the cores.
	In string
	// Old is what is replaced: code that occurs once in it. If it ends in ..., it
	// is the one statement that begins with it. "" is the whole body, or the
	// value.
	Old string
	New string
	// Import, if set, is imported by the file.
	Import string
}

// All are the planted bugs, numbered as in the package's documentation.
var All = []Mutant{
	{"unsorted fold", "seed-0", []Edit{
		{In: "round.set", Old: "return out", New: "first := int(r.proposed) % len(out); return append(out[first:], out[:first]...)"},
		{In: "folding.admit", Old: "slices.SortFunc(sorted ..."},
	}},
	{"lost late delta", "interleavings", []Edit{
		{In: "Machine.held", Old: "f.touched(rnd)"},
	}},
	{"double count on return", "full-disk", []Edit{
		{In: "Learner.Return", Old: "f.own = slices.Delete(f.own, i, i+1)"},
	}},
	{"double count on restart", "crash", []Edit{
		{In: "Learner.Restore", Old: "!slices.Contains(folded, seq)", New: "true || slices.Contains(folded, seq)"},
	}},
	{"unbounded queue", "backlog", []Edit{
		{In: "MaxPulls", New: "1 << 30"},
		{In: "MaxPullsPerPeer", New: "1 << 30"},
	}},
	{"wait on a peer", "alone", []Edit{
		{In: "Machine.tickEnd", Old: "m.cfg.Learner &&", New: "m.cfg.Learner && len(m.gossip.Peers().Learners(now)) > 0 &&"},
	}},
	{"stale tip adopted", "calm", []Edit{
		{In: "Machine.TakeFold", Old: "f.chain.tip = tip", New: "before := f.chain.tip; f.chain.tip = tip"},
		{In: "Machine.TakeFold", Old: "m.adopt(f, false)", New: "f.chain.tip = before; m.adopt(f, false); f.chain.tip = tip"},
	}},
	{"per-fragment fork choice", "fork", []Edit{
		{In: "Machine.Install", Old: "f.own.leave(", New: "if t.Tokens < f.chain.tip.Tokens { continue }; f.own.leave("},
	}},
	{"clock used in fold", "calm", []Edit{
		{In: "Params.claimed", Old: "p.weight(d)", New: "p.weight(d) * (1 + float64(time.Now().UnixNano()%1000)/1e6)", Import: "time"},
	}},
	{"share cap skipped", "share", []Edit{
		{In: "shareOut", Old: "capShares(members, p.shareCaps(members, deltas))"},
	}},
	{"equivocation proof ignored", "equivocator", []Edit{
		{In: "Machine.Exclude", Old: "e.delta.Author == author", New: "false"},
	}},
	{"payload unchecked", "wrong-payloads", []Edit{
		{In: "Fetch.came", Old: "bad != nil", New: "false && bad != nil"},
	}},
	{"signed twice", "own-lost", []Edit{
		{In: "Machine.Restore", Old: "f.own.mark = s.Mark"},
	}},
	{"end ignored", "calm", []Edit{
		{In: "Link.Ended", New: "return false"},
		{In: "NextLink", Old: "prev.EndRound == 0 || next.Round <= prev.EndRound+1", New: "true"},
		{In: "Tip.Takes", New: "return true"},
		{In: "Machine.missing", Old: "m.cfg.Params.Budget - min(seen+said, m.cfg.Params.Budget)",
			New: "2*m.cfg.Params.Budget - min(seen+said, 2*m.cfg.Params.Budget)"},
	}},
	{"return forgotten", "seed-7", []Edit{
		{In: "adoption.apply", Old: "n.back = append(n.back, c.Own)"},
	}},
	{"unbounded round", "flood", []Edit{
		{In: "Machine.Offer", Old: "if d.Author != m.self && ..."},
		{In: "Machine.thin", New: "return"},
	}},
	{"repair by the rules of gossip", "one-proof", []Edit{
		{In: "repair.acceptOne", Old: ", Repair: true"},
	}},
	{"lost work put back", "fork", []Edit{
		{In: "ownDelta.move", Old: "o.gone || whole", New: "o.gone"},
	}},
	{"forgotten while a snapshot travelled", "far-fork", []Edit{
		{In: "fragment.reset", Old: "for r := range f.deltas.rounds ...", New: "clear(f.deltas.rounds)"},
	}},
	{"left too early", "leave", []Edit{
		{In: "View.MayLeave", Old: "v.m.rounds.AllHanded(v.m.end.ticked) &&"},
	}},
	{"late delta lost at a restart", "restart", []Edit{
		{In: "Machine.Restore", Old: "f.touchUnfolded(m.p)"},
	}},
	{"first come in a full round", "full", []Edit{
		{In: "room.beyond", New: "return r.have >= r.most"},
	}},
	{"revoked from the start", "revoke-calm", []Edit{
		{In: "fragment.keptOut", Old: "at != 0 && d.Round >= at", New: "at != 0"},
	}},
	{"words not told", "revoke-late", []Edit{
		{In: "peerList.body", Old: "r.Config.Members.EncodedWords()", New: "nil"},
	}},
	{"guests weigh what they claim", "guests", []Edit{
		{In: "boundGuests", New: "return"},
	}},
	{"guests end a run", "guests", []Edit{
		{In: "Params.Counted", Old: "!d.Guest", New: "true"},
	}},
	{"guests close rounds", "guests", []Edit{
		{In: "round.heldOfMembers", Old: "r.members.have", New: "r.have()"},
		{In: "Machine.held", Old: "!e.delta.Guest", New: "true"},
		{In: "Machine.trusts", Old: "d.Guest", New: "false"},
		{In: "Machine.admits", Old: "if d.Guest && !repair ..."},
	}},
	{"guests are believed", "guests", []Edit{
		{In: "Machine.Credit", Old: "m.guest(author)", New: "false"},
		{In: "chain.Contributed", Old: "!c.m.guest(author)", New: "true"},
		{In: "Table.Guest", New: "return false"},
	}},
	{"each key has a rate of its own", "leaked", []Edit{
		{In: "Limiter.charge", Old: "uses > 0", New: "false"},
	}},
	{"copies count as work", "copies", []Edit{
		{In: "comparison.likenessBetween", New: "if i == j { return 1 }; return 0"},
	}},
	{"second chain", "slow-join", []Edit{
		{In: "Machine.tickFetch", Old: "f.Any ||", New: ""},
		{In: "Machine.mayReturn", Old: "m.join.holder > 0", New: "false"},
	}},
}

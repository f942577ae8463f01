package mutants

// Mutant is a planted bug: replacements in the source of the cores.
type Mutant struct {
	Name  string
	Trial string // the trial that finds it soonest
	Edits []Edit
}

// Edit replaces Old, which must occur once, by New.
type Edit struct{ File, Old, New string }

// All are the planted bugs, numbered as in the package's documentation.
func All() []Mutant {
	return []Mutant{
		{"unsorted fold", "seed-0", []Edit{
			{"optimizer/rounds/rounds.go", `			out = append(out, e.delta)
		}
	}
	return out
`, `			out = append(out, e.delta)
		}
	}
	first := int(r.memo) % len(out) // by how they arrived
	return append(out[first:], out[:first]...)
`},
			{"optimizer/outer/fold.go", `	slices.SortFunc(sorted, func(a, b Contribution) int {
		if c := CompareAuthors(a.Delta.Author, b.Delta.Author); c != 0 {
			return c
		}
		return CompareIDs(a.Delta.ID, b.Delta.ID)
	})
`, ""},
		}},
		{"lost late delta", "interleavings", []Edit{
			{"optimizer/rounds/rounds.go", `			m.late.observeWay(e.delta.Author, min(late, m.p.GraceMaxMs))
		}
	}
	f.touched(rnd)
`, `			m.late.observeWay(e.delta.Author, min(late, m.p.GraceMaxMs))
		}
	}
`},
		}},
		{"double count on return", "full-disk", []Edit{
			{"optimizer/outer/account.go", `		f.pending.add(o.work())
	}
	f.drop(seqs, nil)
`, `		f.pending.add(o.work())
	}
`},
		}},
		{"double count on restart", "crash", []Edit{
			{"optimizer/outer/learner.go", `		f.own = append(f.own, ownDelta{Own: o, share: 1})
`, `		o.Folded = false
		f.own = append(f.own, ownDelta{Own: o, share: 1})
`},
		}},
		{"unbounded queue", "backlog", []Edit{
			{"gossip/limits.go", `	maxPulls        = 64
	maxPullsPerPeer = 8
`, `	maxPulls        = 1 << 30
	maxPullsPerPeer = 1 << 30
`},
		}},
		{"wait on a peer", "alone", []Edit{
			{"node/core/end.go", `	may := m.cfg.Learner && ready &&`, `	may := m.cfg.Learner && ready && len(m.gossip.LiveLearners(now)) > 0 &&`},
		}},
		{"stale tip adopted", "calm", []Edit{
			{"optimizer/rounds/fold.go", `	m.adopt(f, false)
	m.advance(now, f)
`, `	f.tip = before
	m.adopt(f, false)
	f.tip = tip
	m.advance(now, f)
`},
			{"optimizer/rounds/fold.go", `	f.tip = tip
	if len(job.links) > 0 {
`, `	before := f.tip
	f.tip = tip
	if len(job.links) > 0 {
`},
		}},
		{"per-fragment fork choice", "fork", []Edit{
			{"optimizer/rounds/fold.go", `		f := m.frags[i]
		f.leave(history[i][0])
`, `		f := m.frags[i]
		if t.Tokens < f.tip.Tokens {
			continue
		}
		f.leave(history[i][0])
`},
		}},
		{"clock used in fold", "calm", []Edit{
			{"optimizer/outer/weights.go", `	"slices"
)`, `	"slices"
	"time"
)`},
			{"optimizer/outer/weights.go", `w[i] = p.weight(d, round)`, `w[i] = p.weight(d, round) * (1 + float64(time.Now().UnixNano()%1000)/1e6)`},
		}},
		{"share cap skipped", "share", []Edit{
			{"optimizer/outer/weights.go", `	capShares(w, p.MaxShare)
`, ""},
		}},
		{"evidence ignored", "equivocator", []Edit{
			{"optimizer/rounds/rounds.go", `func(e entry) bool { return e.delta.Author == author })`, `func(e entry) bool { return false })`},
		}},
		{"payload unchecked", "wrong-payloads", []Edit{
			{"gossip/pull.go", `CheckPayload(b); bad != nil {`, `CheckPayload(b); false && bad != nil {`},
		}},
		{"signed twice", "seed-264", []Edit{
			{"optimizer/rounds/restore.go", `	f.mark = s.Mark
`, ""},
		}},
		{"end ignored", "calm", []Edit{
			{"optimizer/outer/link.go", `return l.EndRound != 0 && l.Round > l.EndRound }`, `return false }`},
			{"optimizer/outer/link.go", `	if prev.EndRound == 0 || next.Round <= prev.EndRound+1 {`, `	if true {`},
			{"optimizer/outer/tip.go", `return t.EndRound == 0 || round <= t.EndRound+1`, `return true`},
			{"node/core/needed.go", `	return m.cfg.Params.Budget - min(made, m.cfg.Params.Budget)
`, `	return 2*m.cfg.Params.Budget - min(made, 2*m.cfg.Params.Budget)
`},
		}},
		{"return forgotten", "seed-7", []Edit{
			{"optimizer/outer/learner.go", `	f.takeBack(returned)
	return nil
}`, `	f.drop(returned, nil)
	return nil
}`},
		}},
		{"unbounded round", "flood", []Edit{
			{"optimizer/rounds/rounds.go", `	if d.Author != m.self && (r.size() >= maxEntries || !vouched && !repair && r.hollow() >= maxHollow) {
		return ErrFull
	}
`, ""},
		}},
		{"repair by the rules of gossip", "one-proof", []Edit{
			{"gossip/repair.go", `From: s.peer.id, Repair: true})`, `From: s.peer.id})`},
		}},
		{"lost work put back", "fork", []Edit{
			{"optimizer/rounds/learn.go", `	case o.gone || whole:
		o.gone = true`, `	case o.gone:`},
		}},
		{"forgotten while tips travelled", "far-fork", []Edit{
			{"optimizer/rounds/rounds.go", `	for r := range f.rounds {
		if r <= f.base {
			delete(f.rounds, r)
		}
	}
`, `	clear(f.rounds)
`},
		}},
		{"left too early", "leave", []Edit{
			{"node/core/end.go", `m.rounds.Flushed() && m.rounds.AllHanded(m.end.ticked) &&`, `m.rounds.Flushed() &&`},
		}},
		{"late delta lost at a restart", "restart", []Edit{
			{"optimizer/rounds/restore.go", `	f.touchUnfolded(m.p)
`, ""},
		}},
	}
}

package core

import (
	"errors"
	"fmt"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// givenLag is how many rounds behind its own tip a source gives. The deltas of the last
// rounds may still be on their way, and the joiner must fold them itself.
const givenLag = 2

// maxGivenFolds is how many rounds a source folds again for the tip of a round whose base
// it has dropped already. Bases of odd rounds stay for two rounds, and two sources are
// seldom further apart.
const maxGivenFolds = 4

// GivenTip is what a manifest says of one fragment.
type GivenTip struct {
	Round, Closed uint32
	Links         []outer.Link    // up to Round, see History; none: nothing to give
	Start         uint32          // the kept base from which the tip is made
	Sets          [][]outer.Delta // of the rounds from there to Round
}

// GivenTips chooses what a snapshot source gives of each fragment: the tips of given
// rounds, or, without any, those that suit a joiner.
func GivenTips(params outer.Params, m *rounds.Machine, at []uint32) []GivenTip {
	all := make([]GivenTip, m.Fragments())
	for p := range all {
		if at == nil {
			all[p] = GiveTip(params, m, p)
		} else {
			all[p] = GiveTipAt(params, m, p, at[p])
		}
	}
	return all
}

// GiveTip chooses the newest kept base that still lets a joiner fold deltas on
// their way, and whose links are known. Where folds are so far behind that none
// is, there is nothing to give.
func GiveTip(params outer.Params, m *rounds.Machine, p int) (d GivenTip) {
	tip := m.Fragment(p).Tip().Round
	d.Closed = m.Fragment(p).Closed()
	for _, base := range m.Fragment(p).Bases() {
		links := History(params, m, p, base)
		if len(links) > 0 && (len(d.Links) == 0 || base+givenLag <= tip) {
			d.Round, d.Start, d.Links = base, base, links
		}
	}
	return d
}

// GiveTipAt is the tip of a given round: a kept base, or folded again from the
// one below it. A round that this node cannot make is left without links, and wire.NoTip is one.
// For wire.NewestTip it is that of GiveTip.
func GiveTipAt(params outer.Params, m *rounds.Machine, p int, round uint32) GivenTip {
	if round == wire.NewestTip {
		return GiveTip(params, m, p)
	}
	d := GivenTip{Closed: m.Fragment(p).Closed()}
	base, found := uint32(0), false
	for _, b := range m.Fragment(p).Bases() {
		if b <= round {
			base, found = b, true
		}
	}
	if !found || round > m.Fragment(p).Tip().Round || round-base > maxGivenFolds {
		return d
	}
	d.Round, d.Start, d.Links = round, base, History(params, m, p, round)
	for r := base + 1; r <= round; r++ {
		d.Sets = append(d.Sets, m.Fragment(p).Set(r))
	}
	return d
}

// Link is the link of the tip. There must be Links.
func (d GivenTip) Link() outer.Link { return d.Links[len(d.Links)-1] }

// ErrOvertaken: a snapshot of another chain was installed, or rounds folded again, after
// the machine asked.
var ErrOvertaken = errors.New("overtaken by other tips")

// Tip is the tip to give, from the base of round Start. fold makes the tip of the
// next round from the tip it is given.
func (d GivenTip) Tip(base *outer.Tip, fold func(tip *outer.Tip, set []outer.Delta) (*outer.Tip, error)) (*outer.Tip, error) {
	tip := base
	for _, set := range d.Sets {
		var err error
		if tip, err = fold(tip, set); err != nil {
			return nil, err
		}
	}
	if tip.Chain != d.Link().Chain {
		return nil, fmt.Errorf("tip of round %d to give away: %w", d.Round, ErrOvertaken)
	}
	return tip, nil
}

// ErrNothingToGive says that none of the tips asked for can be given, or, where the source
// chose them, not all.
var ErrNothingToGive = errors.New("the tips asked for are not held")

// ManifestOf is the manifest of tips to give; own says that they are the source's own choice.
// describe cuts one fragment's tip into chunks and says what they are. Given rounds that
// cannot be made are left out. What the source chose must all be there. A run that has folded
// nothing yet needs no chunks, as every joiner can make genesis.
func ManifestOf(all []GivenTip, own bool, describe func(fragment int, d GivenTip) (wire.FragmentManifest, error)) (m wire.Manifest, err error) {
	empty := own && allGenesis(all)
	given := empty
	for p, d := range all {
		f := wire.FragmentManifest{}
		err = ErrNothingToGive
		if len(d.Links) > 0 && !empty {
			f, err = describe(p, d)
		}
		switch {
		case empty:
		case err != nil && own:
			return wire.Manifest{}, fmt.Errorf("fragment %d: %w", p, err)
		case err != nil:
			f = wire.FragmentManifest{}
		default:
			given = true
		}
		f.Closed = max(d.Closed, f.Round)
		m.Fragments = append(m.Fragments, f)
	}
	if !given {
		return wire.Manifest{}, ErrNothingToGive
	}
	return m, nil
}

// allGenesis says that the run has not folded anything that a joiner could
// not make from genesis.
func allGenesis(all []GivenTip) bool {
	for _, d := range all {
		if d.Round > 0 || len(d.Links) == 0 {
			return false
		}
	}
	return true
}

package core

import (
	"errors"
	"fmt"
	"slices"

	"atoll/gossip"
	"atoll/gossip/finality"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// Finality is what a machine needs to vote on what is final, in a run whose genesis says that it does.
type Finality struct {
	StepMs int64           // how long a phase of a vote lasts at first if votes are missing
	Gate   gossip.VoteGate // is told who votes; nil if nobody asks it
	Kept   KeptFinality    // what the disk has; the zero value is nothing
}

// KeptFinality is what a disk has of votes, and what its records say of the own chain.
type KeptFinality struct {
	State   *finality.State
	Last    *finality.Certificate
	Shorts  []uint64 // gossip.ShortOf each certificate, by height
	Damaged bool     // the state cannot be read: what this node signed is forgotten

	history *finality.History
	later   [][]finalRound // by fragment: rounds that the machine is yet to call final, whose deltas it does not know
	before  [][]outer.Link // as in final
}

// finalRound is who has deltas in a round.
type finalRound struct {
	round   uint32
	authors []finality.Candidate
}

// FinalDisk is what a restart reads of votes.
type FinalDisk interface {
	Ledger
	// Votes is the state that SaveVotes brought last, nil if there is none.
	Votes() ([]byte, error)
	// Finals are the encoded certificates of a height and those above it, at most so many.
	Finals(from uint32, most int) ([][]byte, error)
}

// LoadFinality reads what a disk has of votes. saved is what Load returned, nil if it has nothing.
func LoadFinality(d FinalDisk, run wire.RunID, params outer.Params, saved []Saved, members *member.Table) (k KeptFinality, err error) {
	if err := k.loadVotes(d); err != nil {
		return k, err
	}
	if err := k.loadCertificates(d, run); err != nil {
		return k, err
	}
	every := finality.Every(params.WindowUnion)
	k.history = finality.NewHistory(every, params.Fragments)
	if k.Last != nil {
		k.history.Keep(k.Last.Value.Round)
	}
	if saved == nil {
		return k, nil
	}
	return k, k.loadHistory(d, saved, members, finality.MaxRounds(every))
}

func (k *KeptFinality) loadVotes(d FinalDisk) error {
	b, err := d.Votes()
	if err != nil || b == nil {
		return err
	}
	state, err := finality.ParseState(b)
	if k.Damaged = err != nil; !k.Damaged {
		k.State = &state
	}
	return nil
}

// loadCertificates reads the certificates up to the first that is damaged. Those above it are fetched again.
func (k *KeptFinality) loadCertificates(d FinalDisk, run wire.RunID) error {
	for {
		from := uint32(len(k.Shorts))
		list, err := d.Finals(from, wire.MaxFinals)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, b := range list {
			c, err := finality.Parse(b)
			if err != nil || c.Height != uint32(len(k.Shorts)) {
				return nil
			}
			k.Last, k.Shorts = &c, append(k.Shorts, gossip.ShortOf(run, c))
		}
	}
}

// segment is the rounds of a fragment that the records have one after the other, up to some round.
type segment struct {
	start  finality.Tip // after which they begin
	rounds []finalRound
	links  []outer.Link // of rounds
}

func (s segment) last() uint32 { return s.start.Round + uint32(len(s.rounds)) }

// loadHistory tells the history what the records have from the newest certificate on, of as many rounds as it keeps values
// of.
func (k *KeptFinality) loadHistory(d FinalDisk, saved []Saved, members *member.Table, most uint32) error {
	segments, starts := make([]segment, len(saved)), make([]finality.Tip, len(saved))
	for p, s := range saved {
		first := s.History[0] // the machine begins to call rounds final after it
		from := uint32(0)
		if k.Last != nil && p < len(k.Last.Value.Points) {
			from = min(k.Last.Value.Points[p].Round, first.Round)
		}
		from = max(from, first.Round-min(first.Round, most))
		var err error
		if segments[p], err = readSegment(d, p, from, s.Bases[0], members); err != nil {
			return fmt.Errorf("load what is final in fragment %d: %w", p, err)
		}
		if segments[p].last() < first.Round {
			segments[p] = segment{start: tipOf(first)}
		}
		starts[p] = segments[p].start
	}
	k.history.Replace(make([]uint32, len(saved)), starts)
	k.later, k.before = make([][]finalRound, len(saved)), make([][]outer.Link, len(saved))
	for p, s := range segments {
		k.before[p] = slices.Clone(saved[p].History[1:])
		for i, r := range s.rounds {
			if r.round > saved[p].History[0].Round {
				k.later[p] = append(k.later[p], r)
				continue
			}
			l := s.links[i]
			if err := k.history.Final(p, l.Round, wire.Digest(l.Chain), r.authors, l.Ended()); err != nil {
				return err
			}
		}
	}
	return nil
}

// readSegment reads the records of the rounds from..to of a fragment. Where one is missing, or the author of a delta in
// one, what is older is left out.
func readSegment(d FinalDisk, p int, from, to uint32, members *member.Table) (s segment, err error) {
	err = d.Rounds(p, max(from, 1), to, func(l outer.Link) error {
		authors, known, err := authorsOf(l, members, func(id wire.Digest) (wire.Header, bool, error) { return d.HeaderAt(p, l.Round, id) })
		if !known || l.Round == from || l.Round != s.last()+1 {
			s = segment{start: tipOf(l)}
			return err
		}
		s.rounds, s.links = append(s.rounds, finalRound{l.Round, authors}), append(s.links, l)
		return err
	})
	return s, err
}

// authorsOf are the authors of the deltas folded in a round, if all headers and what admits their authors are known.
func authorsOf(l outer.Link, members *member.Table, header func(wire.Digest) (wire.Header, bool, error)) (authors []finality.Candidate, known bool, err error) {
	for _, id := range l.Folded {
		h, known, err := header(wire.Digest(id))
		if err != nil || !known || errors.Is(members.CheckHeader(h), member.ErrUnknown) {
			return nil, false, err
		}
		authors = appendAuthor(authors, DeltaOf(wire.Digest(id), h, members))
	}
	return authors, true, nil
}

// appendAuthor adds the author of a delta. An owner's word is none, and guests do not vote.
func appendAuthor(authors []finality.Candidate, d outer.Delta) []finality.Candidate {
	if d.Revocation() || d.Guest {
		return authors
	}
	return append(authors, finality.Candidate{Author: wire.PeerID(d.Author), Invite: d.Invite, Uses: d.Places})
}

// final is what the machine tells its votes of the own chain.
type final struct {
	history *finality.History // nil in a run without finality
	later   [][]finalRound
	before  [][]outer.Link // by fragment, ascending: rounds that led to tips taken whole, whose authors may be unknown yet
	abstain bool
}

func newFinal(cfg Config) final {
	f := cfg.Finality
	if f == nil {
		return final{}
	}
	made := final{history: f.Kept.history, later: f.Kept.later, before: f.Kept.before, abstain: f.Kept.Damaged || cfg.KeyOnly && cfg.Learner}
	if made.history == nil {
		made.history = finality.NewHistory(finality.Every(cfg.Params.WindowUnion), cfg.Params.Fragments)
	}
	if made.later == nil {
		made.later, made.before = make([][]finalRound, cfg.Params.Fragments), make([][]outer.Link, cfg.Params.Fragments)
	}
	return made
}

// votes is the part of the core of spreading in it.
func (f final) votes(cfg Config) *gossip.Finality {
	if f.history == nil {
		return nil
	}
	kept := cfg.Finality.Kept
	return &gossip.Finality{
		Chain: f.history, Every: finality.Every(cfg.Params.WindowUnion), StepMs: cfg.Finality.StepMs, Gate: cfg.Finality.Gate,
		Last: kept.Last, Shorts: kept.Shorts, Saved: kept.State, Abstain: f.abstain,
	}
}

// finalRound takes a round that cannot change any more.
func (m *Machine) finalRound(e rounds.Final) {
	p, later := e.Fragment, m.final.later[e.Fragment]
	for len(later) > 0 && later[0].round < e.Link.Round {
		later = later[1:]
	}
	var authors []finality.Candidate
	if len(later) > 0 && later[0].round == e.Link.Round {
		authors, later = later[0].authors, later[1:]
	} else {
		for _, d := range e.Deltas {
			authors = appendAuthor(authors, d)
		}
	}
	m.final.later[p] = later
	if e.Link.Round <= m.final.history.Last(p) {
		return // records of it were read at the start
	}
	if err := m.final.history.Final(p, e.Link.Round, wire.Digest(e.Link.Chain), authors, e.Link.Ended()); err != nil {
		m.emit(gossip.Event{Kind: gossip.EventFinal, Peer: m.self, Text: fmt.Sprintf("votes no more in this process: %v", err)})
	}
}

// replaced says that tips were taken whole, with the links that lead to each. Whose ids the first link has is not checked.
func (m *Machine) replaced(tips []*outer.Tip, history [][]outer.Link) {
	if m.final.history == nil {
		return
	}
	common, stand := make([]uint32, len(tips)), make([]finality.Tip, len(tips))
	copy(common, m.join.common)
	for p, links := range history {
		stand[p] = tipOf(links[len(links)-1])
		m.final.later[p], m.final.before[p] = nil, slices.Clone(links[1:])
	}
	m.final.history.Replace(common, stand)
	for p := range tips {
		m.recall(p)
	}
}

// tipOf is where a link brings its fragment.
func tipOf(l outer.Link) finality.Tip {
	return finality.Tip{Point: finality.Point{Round: l.Round, Chain: wire.Digest(l.Chain)}, Ended: l.Ended()}
}

// recall tells of rounds that led to tips taken whole, the newest first, as far as all headers of their deltas have come. A
// certificate that lists this node among its voters for the first time is of rounds some of which are before its tips.
func (m *Machine) recall(p int) {
	if m.final.history == nil {
		return
	}
	for links := m.final.before[p]; len(links) > 0; links = m.final.before[p] {
		l, next := links[len(links)-1], m.final.history.First(p)-1
		if l.Round == next {
			authors, known, _ := authorsOf(l, m.cfg.Gossip.Members, m.headerHere)
			if !known {
				return
			}
			if err := m.final.history.Earlier(p, l.Round, wire.Digest(l.Chain), authors); err != nil {
				panic(fmt.Sprintf("recall round %d of fragment %d: %v", l.Round, p, err)) // it is the next one
			}
		}
		m.final.before[p] = links[:len(links)-1]
	}
}

// headerHere is the header of a delta, if it is in memory. It never fails.
func (m *Machine) headerHere(id wire.Digest) (h wire.Header, known bool, err error) {
	if signed, known := m.headers[id]; known {
		return signed.Header, true, nil
	}
	return h, false, nil
}

// tickFinal ends an abstention that no marks end: what the disk has damaged. In the time for which a key without its
// disk waits, votes that were under way end.
func (m *Machine) tickFinal(now Time) {
	if m.final.abstain && !m.marks.asking && m.join.phase == Ready && now-m.join.began >= keyOnlyMs {
		m.voteFrom(now)
	}
}

func (m *Machine) voteFrom(now Time) {
	m.final.abstain = false
	m.gossip.VoteFrom(now)
}

// VotesSaved says what became of the last gossip.SaveVotes.
func (m *Machine) VotesSaved(now Time, err error) {
	m.gossip.VotesSaved(now, err)
	m.pump(now)
}

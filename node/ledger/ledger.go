// Package ledger is a store as a replica keeps things in it: links as records, tips as bases, and which of the store's errors a
// replica can go on after. It also keeps what a node knows of its run between two starts.
package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/authors"
	"atoll/node/core"
	"atoll/node/inspect"
	"atoll/node/replica"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// Ledger is a store as a replica keeps things in it.
type Ledger struct {
	*store.Store
	plan    outer.Plan
	params  outer.Params
	members *member.Table                    // nil in a run that is open
	counted atomic.Pointer[[]authors.Tokens] // what the last look at all records came to
}

var _ replica.Ledger = (*Ledger)(nil)

// New is the ledger of a run in a store. members is nil in a run that is open.
func New(s *store.Store, plan outer.Plan, params outer.Params, members *member.Table) *Ledger {
	return &Ledger{Store: s, plan: plan, params: params, members: members}
}

// gone says which error of a replica's ledger an error is.
func gone(err error) error {
	switch {
	case errors.Is(err, store.ErrIndex):
		return fmt.Errorf("%w: %w", replica.ErrFatal, err)
	case errors.Is(err, store.ErrCorrupt), errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("%w: %w", replica.ErrGone, err)
	}
	return err
}

// Rounds is Store.Rounds with records as links.
func (l *Ledger) Rounds(fragment int, from, to uint32, f func(outer.Link) error) error {
	return l.Store.Rounds(fragment, from, to, func(round uint32, r store.Round) error { return f(linkOf(round, r)) })
}

func linkOf(round uint32, r store.Round) outer.Link {
	l := outer.Link{Round: round, Chain: outer.Digest(r.Chain), State: outer.Digest(r.State), Tokens: r.Tokens, EndRound: r.EndRound}
	for _, id := range r.Folded {
		l.Folded = append(l.Folded, outer.ID(id))
	}
	slices.SortFunc(l.Folded, func(a, b outer.ID) int { return bytes.Compare(a[:], b[:]) }) // older records have the order of the fold
	return l
}

func recordOf(l outer.Link) store.Round {
	r := store.Round{Chain: wire.Digest(l.Chain), State: wire.Digest(l.State), Tokens: l.Tokens, EndRound: l.EndRound}
	for _, id := range l.Folded {
		r.Folded = append(r.Folded, wire.Digest(id))
	}
	return r
}

func recordsOf(links []outer.Link) (records []store.Round) {
	for _, l := range links {
		records = append(records, recordOf(l))
	}
	return records
}

// PutRounds is Store.PutRounds with links as records.
func (l *Ledger) PutRounds(fragment int, links []outer.Link) error {
	return l.Store.PutRounds(fragment, links[0].Round, recordsOf(links))
}

// Install is Store.Install. Genesis has no record.
func (l *Ledger) Install(fragments []replica.InstalledFragment) error {
	in := make([]store.Installed, len(fragments))
	for p, f := range fragments {
		links, first := f.Links, f.Links[0].Round
		in[p] = store.Installed{Round: f.Tip.Round, Tip: f.Tip, First: first, Forget: f.Forget}
		if f.Keep {
			in[p].Keep = first
		}
		if first == 0 {
			in[p].First, links = 1, links[1:]
		}
		in[p].Rounds = recordsOf(links)
	}
	return l.Store.Install(in)
}

// Header is Store.Header, where not to know one is no error.
func (l *Ledger) HeaderAt(fragment int, round uint32, id wire.Digest) (h wire.Header, known bool, err error) {
	signed, err := l.Store.HeaderAt(fragment, round, id)
	if errors.Is(err, store.ErrNotFound) {
		return h, false, nil
	}
	return signed.Header, err == nil, err
}

// Held is Store.Held of a round and all later ones.
func (l *Ledger) Held(fragment int, from uint32, f func(id wire.Digest, h wire.SignedHeader)) error {
	return l.Store.Held(fragment, from, store.MaxRound, func(id wire.Digest, h wire.SignedHeader) error {
		f(id, h)
		return nil
	})
}

// Authors tells the authors in the order in which they were folded first. It counts what they made as well, see Counted.
func (l *Ledger) Authors(f func(wire.PeerID)) error {
	counts := make([]authors.Tokens, len(l.plan))
	for p := range counts {
		var err error
		if counts[p], err = authors.Count(l.Store, p, l.params, l.members); err != nil {
			return err
		}
	}
	for _, author := range authors.InOrder(counts) {
		f(author)
	}
	l.counted.Store(&counts)
	return nil
}

// Counted is what authors made by the last look at all records, once.
func (l *Ledger) Counted() []authors.Tokens {
	if counts := l.counted.Swap(nil); counts != nil {
		return *counts
	}
	return nil
}

// PutDelta implements replica.Ledger, as do the methods below.
func (l *Ledger) PutDelta(id wire.Digest, h *wire.SignedHeader, payload []byte) error {
	return l.Store.PutDelta(id, *h, payload)
}

// PutMember is Store.PutMember.
func (l *Ledger) PutMember(c member.Certificate) error { return l.Store.PutMember(c.Encode()) }

// Members is Store.Members, opened. One that does not open is left out.
func (l *Ledger) Members() (members []member.Certificate, err error) {
	kept, err := l.Store.Members()
	for _, b := range kept {
		if c, err := member.Parse(b); err == nil {
			members = append(members, c)
		}
	}
	return members, gone(err)
}

// PutRevocation keeps an owner's word where members are kept: it is about them.
func (l *Ledger) PutRevocation(word member.Word) error { return l.Store.PutMember(word.Kept()) }

// Revocations are what PutRevocation kept.
func (l *Ledger) Revocations() ([]member.Word, error) {
	kept, err := l.Store.Members()
	return inspect.RevocationsIn(kept), gone(err)
}

func (l *Ledger) PutEquivocation(e wire.Equivocation) error { return l.Store.PutEquivocation(e.A, e.B) }

func (l *Ledger) Payload(id wire.Digest) ([]byte, error) {
	b, err := l.Store.Payload(id)
	return b, gone(err)
}

func (l *Ledger) Retain(budget int64, limit []uint32, own map[wire.Digest]bool) (replica.Kept, error) {
	kept, err := l.Store.Retain(budget, limit, own)
	return replica.Kept{Bytes: kept.Total(), Dropped: kept.Dropped}, err
}

// Archive is Store.Seal of rounds that no restart reads, unless the newest kept tip is
// damaged: it reads from a union window before that on.
func (l *Ledger) Archive(limit []uint32) error {
	unread := make([]uint32, len(limit))
	for p, last := range limit {
		bases, err := l.Bases(p)
		if err != nil {
			return err
		}
		if len(bases) == 0 {
			continue // it reads from genesis on
		}
		newest := slices.Max(bases)
		last = min(last, newest-min(newest, l.params.WindowUnion))
		unread[p] = last - min(last, 1)
	}
	_, err := l.Seal(unread, func(round []wire.Header) []uint64 {
		set := make([]outer.Delta, len(round))
		for i, h := range round {
			set[i] = core.DeltaOf(wire.Digest{}, h, l.members)
		}
		return l.params.Counted(set)
	})
	return err
}

// PutOwn ends the node where the store and the machine disagree about what was
// signed.
func (l *Ledger) PutOwn(e core.StoreOwn) error {
	err := l.Store.PutOwn(e.ID, e.Header, e.Payload, store.OwnMeta{Seq: e.Seq})
	if errors.Is(err, store.ErrMark) || errors.Is(err, store.ErrCorrupt) {
		return fmt.Errorf("%w: %w", replica.ErrFatal, err)
	}
	return err
}

func (l *Ledger) Own() ([]core.OwnRecord, error) {
	own, err := l.Store.Own()
	records := make([]core.OwnRecord, len(own))
	for i, o := range own {
		records[i] = core.OwnRecord{Seq: o.Seq, ID: o.ID, Header: o.Header.Header}
	}
	return records, err
}

func (l *Ledger) ForgetOwn(ids []wire.Digest) (err error) {
	for _, id := range ids {
		if e := l.Store.ForgetOwn(id); !errors.Is(e, store.ErrNotFound) {
			err = errors.Join(err, e)
		}
	}
	return err
}

func (l *Ledger) LoseOwn(id wire.Digest) error {
	return errors.Join(l.DropPayload(id), l.Store.ForgetOwn(id))
}

// marksKey says that every round which the node's key signed is known to the ledger.
const marksKey = "marks"

// PutMarksKnown records that.
func (l *Ledger) PutMarksKnown() error { return l.Put(marksKey, []byte{1}) }

// MarksKnown reports whether that is recorded.
func (l *Ledger) MarksKnown() (bool, error) {
	_, err := l.Get(marksKey)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (l *Ledger) BaseState(fragment int, round uint32) (outer.Digest, error) {
	state, err := l.BaseDigest(fragment, round)
	return outer.Digest(state), err
}

func (l *Ledger) Base(fragment int, round uint32) (*outer.Tip, error) {
	blob, err := l.Store.Base(fragment, round)
	if err != nil {
		return nil, gone(err)
	}
	tip, err := outer.DecodeTip(blob, l.plan[fragment], l.params)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", replica.ErrGone, err)
	}
	return tip, nil
}

func (l *Ledger) PutBase(fragment int, tip *outer.Tip) error {
	return l.Store.PutBase(fragment, tip.Round, tip)
}

// Chunk drops a chunk that the disk has damaged: it is fetched again.
func (l *Ledger) Chunk(id wire.Digest) ([]byte, error) {
	b, err := l.Store.Chunk(id)
	if errors.Is(err, store.ErrCorrupt) {
		err = errors.Join(err, l.DropChunk(id))
	}
	return b, err
}

// fetchingKey is where the rounds of a fetched snapshot are kept while there are chunks
// of them.
const fetchingKey = "fetching"

func (l *Ledger) PutFetching(at []uint32) error {
	if at == nil {
		return l.Put(fetchingKey, nil)
	}
	return l.Put(fetchingKey, wire.Marshal(at))
}

// Fetching are the rounds of the snapshot that an earlier process was fetching, nil
// if it was not.
func (l *Ledger) Fetching() []uint32 {
	var at []uint32
	b, err := l.Get(fetchingKey)
	if err != nil || wire.Unmarshal(b, &at) != nil || len(at) != len(l.plan) {
		return nil
	}
	return at
}

// commonKey is where the rounds are kept up to which others are known to have
// folded the same. By them a restart in a partition knows what it began with.
const commonKey = "common"

// Common are those rounds, one a fragment.
func (l *Ledger) Common() []uint32 {
	rounds := make([]uint32, len(l.plan))
	var kept []uint32
	if b, err := l.Get(commonKey); err == nil && wire.Unmarshal(b, &kept) == nil {
		copy(rounds, kept)
	}
	return rounds
}

// PutCommon keeps them.
func (l *Ledger) PutCommon(rounds []uint32) error { return l.Put(commonKey, wire.Marshal(rounds)) }

// Scratch is a store as a replica keeps in it what goes with the process.
type Scratch struct{ *store.Store }

// Keep implements replica.Scratch.
func (s Scratch) Keep(fill func(w io.Writer) error) (replica.Scrap, error) {
	return s.Store.Scratch(fill)
}

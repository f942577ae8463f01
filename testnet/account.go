package testnet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/store"
)

// entry is where the work of one node went: tokens by fragment, each from a
// source of its own, so that they need not fit.
type entry struct {
	name        string
	author      wire.PeerID
	guest       bool     // not one of this world's processes: nothing but its deltas is known
	died        bool     // a process of it was killed
	trained     uint64   // by the step log
	perStep     uint64   // tokens of its largest step
	folded      []uint64 // in the chain
	returned    []uint64 // published, final without being folded, counted as unpublished again: in no sum
	discarded   []uint64 // published, not in the chain
	lostHere    []uint64 // unpublished, with damaged memory, a learner that died or a long absence: see status.Account
	unpublished []uint64 // at the end, by the last status
	unknown     []uint64 // in the chain, but not in the node's own ledger
}

// lost is what is left of the tokens trained after all other columns. It is
// zero for a node that never died.
func (e entry) lost(p int) int64 {
	return int64(e.trained) - int64(e.folded[p]) - int64(e.discarded[p]) - int64(e.lostHere[p]) - int64(e.unpublished[p])
}

// account is the account of a run.
type account struct {
	chain   *chain
	entries []entry
}

// reference returns a node that was there at the end, and its chain.
func (w *world) reference() (ref *member, c *chain, err error) {
	var why error
	for _, m := range w.survivors() {
		if c, err = w.chainOf(m); err == nil {
			return m, c, nil
		}
		why = errors.Join(why, err)
	}
	if why == nil {
		why = fmt.Errorf("no node was left at the end of the run")
	}
	return nil, nil, why
}

// chainOf reads the chain of a node, with the help of all ledgers.
func (w *world) chainOf(m *member) (c *chain, err error) {
	var all ledgers
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, other := range append([]*member{m}, w.members...) {
		if other == m && len(all) > 0 {
			continue
		}
		s, err := store.OpenReadOnly(other.dir)
		if errors.Is(err, store.ErrNotFound) { // killed before it had one
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return readChain(all, w.genesis.Plan(), w.genesis.OuterParams())
}

// survivors are the nodes that saw the end of the run.
func (w *world) survivors() (out []*member) {
	for _, m := range w.members {
		if l := m.newest(); l != nil && l.final && l.last.Finished {
			out = append(out, m)
		}
	}
	return out
}

// account reads where everything went from what the nodes left.
func (w *world) account(ref *member, c *chain) (account, error) {
	a := account{chain: c}
	ours := map[wire.PeerID]bool{}
	for _, m := range w.members {
		e, err := m.entry(c)
		if err != nil {
			return a, fmt.Errorf("account of %s: %w", m.name(), err)
		}
		a.entries = append(a.entries, e)
		ours[e.author] = true
	}
	guests, err := guestEntries(ref.dir, c, ours)
	a.entries = append(a.entries, guests...)
	return a, err
}

// entry is the account of one of the world's own nodes.
func (m *member) entry(c *chain) (e entry, err error) {
	n := len(c.params)
	e = entry{name: m.name(), unpublished: make([]uint64, n), lostHere: m.lostHere(n)}
	key, _, err := store.LoadKey(m.dir)
	if err != nil {
		return e, err
	}
	e.author = wire.PeerIDOf(key)
	steps, err := store.SumSteps(m.dir)
	if err != nil {
		return e, err
	}
	e.trained, e.folded = steps.Tokens, c.sums.of(e.author, n)
	if err := store.EachStep(m.dir, func(s store.Step) { e.perStep = max(e.perStep, s.Tokens) }); err != nil {
		return e, err
	}
	for _, l := range m.lives {
		e.died = e.died || l.killed
	}
	last := m.newest()
	var closed []uint32
	if last.final {
		for p, f := range last.last.Fragments {
			closed = append(closed, f.Closed)
			// A step that ended after the last status is in no delta.
			e.unpublished[p] = f.Unpublished + steps.Tokens - min(steps.Tokens, last.last.TokensTrained)
		}
	}
	err = e.publish(m.dir, c, closed)
	if err == nil {
		m.splitReturned(&e)
	}
	return e, err
}

// splitReturned takes from the node's last status which of its deltas outside of
// the chain were returned. All others went with a lost chain, and by the ledger the
// two look the same. A node that was killed left no last status: then no more is
// discarded than is missing elsewhere.
func (m *member) splitReturned(e *entry) {
	for p := range e.discarded {
		var returned uint64
		for _, l := range m.lives {
			if a := l.last.Account; p < len(a.OwnReturned) {
				returned += a.OwnReturned[p]
			}
		}
		all := e.returned[p] + e.discarded[p]
		e.discarded[p] = all - min(all, returned)
		if elsewhere := e.folded[p] + e.lostHere[p] + e.unpublished[p]; e.died {
			e.discarded[p] = min(e.discarded[p], e.trained-min(e.trained, elsewhere))
		}
		e.returned[p] = all - e.discarded[p]
	}
}

// lostHere is what the node says that it lost without a crash of its own.
func (m *member) lostHere(fragments int) []uint64 {
	sum := make([]uint64, fragments)
	for _, l := range m.lives {
		for p, tokens := range l.last.Account.OwnLostHere {
			sum[p] += tokens
		}
	}
	return sum
}

// publish fills in what the ledger in dir has of the author's deltas.
func (e *entry) publish(dir string, c *chain, closed []uint32) error {
	s, err := store.OpenReadOnly(dir)
	if errors.Is(err, store.ErrNotFound) { // killed before it had one
		n := len(c.params)
		e.returned, e.discarded, e.unknown = make([]uint64, n), make([]uint64, n), e.folded
		return nil
	}
	if err != nil {
		return err
	}
	p, err := c.readPublished(s, e.author, closed)
	e.returned, e.discarded, e.unknown = p.returned, p.discarded, p.unknown
	return errors.Join(err, s.Close())
}

// guestEntries are the accounts of nodes that took part from outside of this
// world, such as one started by hand. What they published counts as what they
// trained.
func guestEntries(dir string, c *chain, ours map[wire.PeerID]bool) ([]entry, error) {
	var out []entry
	for author, folded := range c.sums {
		if ours[author] {
			continue
		}
		e := entry{name: "guest " + author.String(), author: author, guest: true, folded: folded, unpublished: make([]uint64, len(folded)), lostHere: make([]uint64, len(folded))}
		if err := e.publish(dir, c, c.closed); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b entry) int { return a.author.Compare(b.author) })
	return out, nil
}

// mean is the parameter-weighted mean over fragments of a column, rounded down:
// each step's tokens are in every fragment, so they must not be added up.
func (c *chain) mean(column func(p int) uint64) uint64 {
	whole, _ := c.divide(column)
	return whole
}

// divide is mean together with what rounding left, in parts of a token. The sum
// of parameters is the number of parts of one token.
func (c *chain) divide(column func(p int) uint64) (whole, rest uint64) {
	var hi, lo, params uint64
	for p, n := range c.params {
		h, l := bits.Mul64(n, column(p))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
		params += n
	}
	if hi >= params {
		return math.MaxUint64, 0
	}
	return bits.Div64(hi, lo, params)
}

// totals are the columns of the whole run as the report has them.
type totals struct {
	trained, folded, returned, discarded, lostHere, unpublished, lost uint64
}

// rounded is one column of the totals on its way.
type rounded struct {
	to   *uint64
	from func(e entry, p int) uint64
	rest uint64 // what rounding down left
}

// totals rounds the means of all columns to whole tokens so that they add up
// exactly: what rounding down leaves goes to the columns that lost most by it.
// Folded is always rounded down, as every node does.
func (a account) totals() totals {
	var t totals
	t.folded, _ = a.sum(func(e entry, p int) uint64 { return e.folded[p] })
	t.returned, _ = a.sum(func(e entry, p int) uint64 { return e.returned[p] })
	t.trained, _ = a.sum(entry.made)
	columns := []rounded{
		{to: &t.discarded, from: func(e entry, p int) uint64 { return e.discarded[p] }},
		{to: &t.lostHere, from: func(e entry, p int) uint64 { return e.lostHere[p] }},
		{to: &t.unpublished, from: func(e entry, p int) uint64 { return e.unpublished[p] }},
		{to: &t.lost, from: func(e entry, p int) uint64 { return uint64(max(0, e.leftOver(p))) }},
	}
	left := t.trained - min(t.trained, t.folded)
	for i, c := range columns {
		*c.to, columns[i].rest = a.sum(c.from)
		left -= min(left, *c.to)
	}
	slices.SortStableFunc(columns, func(x, y rounded) int { return cmp.Compare(y.rest, x.rest) })
	for i := 0; i < len(columns) && uint64(i) < left; i++ {
		*columns[i].to++
	}
	return t
}

// sum is divide of a column of all entries together.
func (a account) sum(column func(e entry, p int) uint64) (whole, rest uint64) {
	return a.chain.divide(func(p int) (all uint64) {
		for _, e := range a.entries {
			all += column(e, p)
		}
		return all
	})
}

// made is what was trained, for a guest what is known of it.
func (e entry) made(p int) uint64 {
	if e.guest {
		return e.folded[p] + e.discarded[p]
	}
	return e.trained
}

// leftOver is lost as far as it is known: of a guest nothing is.
func (e entry) leftOver(p int) int64 {
	if e.guest {
		return 0
	}
	return e.lost(p)
}

// misfits names what does not add up, to the token.
func (a account) misfits() []string {
	var out []string
	for p := range a.chain.params {
		for _, e := range a.entries {
			if lost := e.leftOver(p); lost < 0 || lost > 0 && !e.died {
				out = append(out, fmt.Sprintf("%s fragment %d: %d tokens trained, %d folded, %d discarded, %d lost here, %d unpublished: %d left over",
					e.name, p, e.trained, e.folded[p], e.discarded[p], e.lostHere[p], e.unpublished[p], lost))
			}
			if e.unknown[p] != 0 && !e.died {
				out = append(out, fmt.Sprintf("%s fragment %d: %d folded tokens are missing in its own ledger", e.name, p, e.unknown[p]))
			}
		}
		if counted := a.chain.counted[p]; counted != a.chain.tokens[p] {
			out = append(out, fmt.Sprintf("fragment %d: the folded deltas have %d tokens that count, the chain says %d", p, counted, a.chain.tokens[p]))
		}
	}
	return out
}

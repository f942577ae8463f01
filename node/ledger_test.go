package node

import (
	"crypto/ed25519"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/inspect/ledgertest"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// toyGenesis is a run that a test can afford.
func toyGenesis(budget uint64) genesis.Genesis { return ledgertest.Genesis(budget) }

// ledgerWriter makes a node's folder by hand, see ledgertest.
type ledgerWriter struct {
	w     *ledgertest.Writer
	t     *testing.T
	dir   string
	g     genesis.Genesis
	plan  outer.Plan
	store *store.Store
	keys  []ed25519.PrivateKey
	tips  []*outer.Tip // those of the writer
}

func newLedger(t *testing.T) *ledgerWriter {
	t.Helper()
	return newLedgerOf(t, toyGenesis(1<<40))
}

func newLedgerOf(t *testing.T, g genesis.Genesis) *ledgerWriter {
	t.Helper()
	w := ledgertest.NewOf(t, g)
	return &ledgerWriter{w: w, t: t, dir: w.Dir, g: g, plan: w.Plan, store: w.Store, keys: w.Keys, tips: w.Tips}
}

func (l *ledgerWriter) check(err error) { l.t.Helper(); l.w.Check(err) }
func (l *ledgerWriter) base(p int)      { l.t.Helper(); l.w.Base(p) }
func (l *ledgerWriter) close() string   { l.t.Helper(); return l.w.Close() }

// round closes a round with the deltas of the learners that are left in keys.
func (l *ledgerWriter) round(p int) {
	l.t.Helper()
	l.w.Keys = l.keys
	l.w.Round(p)
}

func (l *ledgerWriter) delta(p int, round uint32, i int, key ed25519.PrivateKey) outer.Contribution {
	l.t.Helper()
	return l.w.Delta(p, round, i, key)
}

func (l *ledgerWriter) rounds(n int) *ledgerWriter {
	l.t.Helper()
	l.w.Keys = l.keys
	l.w.Rounds(n)
	return l
}

func (l *ledgerWriter) bases() *ledgerWriter {
	l.t.Helper()
	l.w.Bases()
	return l
}

func (l *ledgerWriter) firstDelta(p int, round uint32) wire.Digest {
	l.t.Helper()
	return l.w.FirstDelta(p, round)
}

func (l *ledgerWriter) flip(id wire.Digest) { l.t.Helper(); l.w.Flip(id) }

func (l *ledgerWriter) damageBase(prefix string) { l.t.Helper(); l.w.DamageBase(prefix) }

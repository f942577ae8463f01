// Package ledgertest makes nodes' folders by hand, for tests of what reads them.
package ledgertest

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"testing"
	"time"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/store"
	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/tensor/llama"
)

// Genesis is a run that a test can afford: a model of some thousand
// parameters and a budget of some hundred steps.
func Genesis(budget uint64) genesis.Genesis {
	return genesis.Genesis{
		Rules: genesis.Rules, Name: "toy", WayMs: 100, Seed: 1, Batch: 2,
		Model: llama.Config{Vocab: 256, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, Intermediate: 24, Context: 16, RopeTheta: 10000, NormEps: 1e-5, Tied: true},
		Inner: genesis.Inner{Optimizer: optimizer.NameAdamW, LR: 2e-3},
		Outer: outer.Spec{Fragments: 2, H: 4, Budget: budget, CreatedMs: time.Now().UnixMilli(), OwnText: true}.Resolved(),
	}
}

// Writer makes a node's folder by hand: two learners contribute to every
// round of every fragment.
type Writer struct {
	T       *testing.T
	Dir     string
	Genesis genesis.Genesis
	Plan    outer.Plan
	Store   *store.Store
	Keys    []ed25519.PrivateKey
	Tips    []*outer.Tip

	Members *member.Table       // nil in a run that is open, see Admit
	named   map[int]wire.Digest // by key: the certificate that its headers name
}

// Guests is a run like that of Genesis that admits by invitation, and its owner's key.
func Guests(budget uint64) (genesis.Genesis, ed25519.PrivateKey) {
	owner := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	g := Genesis(budget)
	g.WayMs, g.Owners = 1, append(g.Owners, wire.PeerIDOf(owner))
	return g, owner
}

// Admit admits a learner, as a guest or as a member, in a run that admits by invitation. Its headers name the
// certificate from then on.
func (l *Writer) Admit(owner ed25519.PrivateKey, i int, guest bool) {
	l.T.Helper()
	if l.Members == nil {
		l.Members, l.named = member.NewTable(l.Genesis.RunID(), l.Genesis.Owners), map[int]wire.Digest{}
	}
	seed := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(9)}, ed25519.SeedSize))
	c, err := member.Issue(owner, l.Genesis.RunID(), member.Invite{Guests: guest}, seed).Admit(l.Genesis.RunID(), l.Keys[i])
	l.Check(err)
	_, err = l.Members.Add(c)
	l.Check(err)
	l.Check(l.Store.PutMember(c.Encode()))
	l.named[i] = c.ID(l.Genesis.RunID())
}

func New(t *testing.T) *Writer {
	t.Helper()
	return NewOf(t, Genesis(1<<40))
}

func NewOf(t *testing.T, g genesis.Genesis) *Writer {
	t.Helper()
	l := &Writer{T: t, Dir: t.TempDir(), Genesis: g}
	l.Plan, l.Tips = l.Genesis.Plan(), l.Genesis.Tips()
	for seed := range byte(2) {
		l.Keys = append(l.Keys, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed + 1}, ed25519.SeedSize)))
	}
	l.Check(store.SaveGenesis(l.Dir, l.Genesis.Encode()))
	var err error
	l.Store, err = store.Open(l.Dir, l.Genesis.RunID())
	l.Check(err)
	return l
}

func (l *Writer) Check(err error) {
	l.T.Helper()
	if err != nil {
		l.T.Fatal(err)
	}
}

// round closes a round of a fragment.
func (l *Writer) Round(p int) {
	l.T.Helper()
	tip := l.Tips[p]
	var set []outer.Contribution
	for i, key := range l.Keys {
		set = append(set, l.Delta(p, tip.Round+1, i, key))
	}
	next, res, err := outer.Fold(l.Genesis.OuterParams(), l.Plan[p], tip, tip.Round+1, set)
	l.Check(err)
	l.Check(l.Store.PutRound(p, next.Round, roundRecord(next, res)))
	l.Tips[p] = next
}

func (l *Writer) Delta(p int, round uint32, i int, key ed25519.PrivateKey) outer.Contribution {
	l.T.Helper()
	values := make([]float32, l.Plan[p].Len)
	for k := range values {
		values[k] = float32((k+int(round)+i)%7) * 1e-3
	}
	payload, err := codec.Encode(l.Genesis.Outer.Codec, values)
	l.Check(err)
	h := wire.SignHeader(key, l.Genesis.RunID(), wire.Header{
		Fragment: uint16(p), Round: round, Base: round - 1, Steps: 4, Tokens: uint64(100 * (i + 1)),
		Codec: uint8(l.Genesis.Outer.Codec), Size: uint32(len(payload)), Payload: wire.Sum(payload),
		Certificate: l.named[i],
	})
	id := h.Header.ID(l.Genesis.RunID())
	l.Check(l.Store.PutDelta(id, h, payload))
	return outer.Contribution{Delta: core.DeltaOf(id, h.Header, l.Members), Payload: payload}
}

func (l *Writer) Base(p int) {
	l.T.Helper()
	l.Check(l.Store.PutBase(p, l.Tips[p].Round, l.Tips[p]))
}

func (l *Writer) Rounds(n int) *Writer {
	l.T.Helper()
	for range n {
		for p := range l.Plan {
			l.Round(p)
		}
	}
	return l
}

func (l *Writer) Bases() *Writer {
	l.T.Helper()
	for p := range l.Plan {
		l.Base(p)
	}
	return l
}

// close ends writing and returns the folder.
func (l *Writer) Close() string {
	l.T.Helper()
	l.Check(l.Store.Close())
	return l.Dir
}

// firstDelta is the id of a folded delta of a fragment's round.
func (l *Writer) FirstDelta(p int, round uint32) wire.Digest {
	l.T.Helper()
	r, err := l.Store.Round(p, round)
	l.Check(err)
	return r.Folded[0]
}

// flip changes one byte of a payload on disk.
func (l *Writer) Flip(id wire.Digest) {
	l.T.Helper()
	name, err := id.MarshalText()
	l.Check(err)
	found, err := filepath.Glob(filepath.Join(l.Dir, "deltas", "*", "*", string(name)))
	l.Check(err)
	if len(found) != 1 {
		l.T.Fatalf("the payload of %v is in %d places", id, len(found))
	}
	path := found[0]
	b, err := os.ReadFile(path)
	l.Check(err)
	b[len(b)/2] ^= 1
	l.Check(os.WriteFile(path, b, 0o600))
}

// DamageBase changes the bases whose file names begin so.
func (l *Writer) DamageBase(prefix string) {
	l.T.Helper()
	paths, err := filepath.Glob(filepath.Join(l.Dir, "bases", prefix+"*"))
	l.Check(err)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		l.Check(err)
		b[len(b)-1] ^= 1
		l.Check(os.WriteFile(path, b, 0o600))
	}
}

// roundRecord is what the disk keeps of a folded round.
func roundRecord(tip *outer.Tip, out outer.Result) store.Round {
	r := store.Round{Chain: wire.Digest(tip.Chain), State: wire.Digest(tip.State), Tokens: tip.Tokens, EndRound: tip.EndRound}
	for _, id := range out.Folded {
		r.Folded = append(r.Folded, wire.Digest(id))
	}
	return r
}

package node

import (
	"crypto/ed25519"
	"fmt"
	"sync"

	"atoll/gossip"
	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/node/hardware"
)

// recordBox holds this node's newest signed capability record.
type recordBox struct {
	key    ed25519.PrivateKey
	mu     sync.Mutex
	record hello.Record
	signed hello.Signed
	near   hello.Signed // for peers of the own network; signed if there are no addresses for them alone
	name   string       // "" = none
	named  hello.Signed // with the name, for members; empty if there is none
	inside []string     // those addresses
}

// set signs a record with the next sequence number. The first one follows from
// the time of the start: peers keep the higher of two, also across restarts.
func (b *recordBox) set(r hello.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.Seq = max(b.record.Seq, uint64(r.StartedMs)) + 1
	signed, err := hello.Sign(b.key, r)
	near := signed
	if inside := r; err == nil && len(b.inside) > 0 {
		inside.Addrs, inside.Near = b.inside, true
		near, err = hello.Sign(b.key, inside)
	}
	named := hello.Signed{}
	if err == nil && b.name != "" {
		named, err = hello.Sign(b.key, r.Called(b.name))
	}
	if err != nil {
		return fmt.Errorf("sign capability record: %w", err)
	}
	b.record, b.signed, b.near, b.named = r, signed, near, named
	return nil
}

// reached sets where this node is dialled, and whether it relays. Addresses of the own network
// are for peers there.
func (b *recordBox) reached(a p2p.Addresses) error {
	b.mu.Lock()
	r := b.record
	r.Addrs, r.Relays, b.inside = hello.FirstAddrs(a.Outside), a.Public, hello.FirstAddrs(a.Near)
	b.mu.Unlock()
	return b.set(r)
}

// change applies a change to the record and signs it again.
func (b *recordBox) change(f func(*hello.Record)) error {
	r := b.get()
	f(&r)
	return b.set(r)
}

func (b *recordBox) get() hello.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.record
}

func (b *recordBox) latest() hello.Signed {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.signed
}

func (b *recordBox) latestNear() hello.Signed {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.near
}

// own is what the peer list of this node carries of it.
func (b *recordBox) own() gossip.OwnRecord {
	b.mu.Lock()
	defer b.mu.Unlock()
	return gossip.OwnRecord{Signed: b.signed, Near: b.near, Named: b.named}
}

func (b *recordBox) seq() uint64 { return b.get().Seq }

// firstRecord is what a node says of itself before it knows the model. Who does not know genesis only looks: see enter.
func (n *node) firstRecord() hello.Record {
	r := hello.Record{
		Protocol: hello.Protocol, Run: n.run, Author: n.self, Role: n.role(),
		Precision: "f32", MemoryBytes: hardware.MemoryBytes(), Agent: Agent, StartedMs: n.started.UnixMilli(),
		Devices: []hello.Device{{Kind: "cpu", Name: hardware.CPUName(), Count: 1, MemoryBytes: hardware.MemoryBytes()}},

		Certificate: n.certificate, Visits: n.genesis.Rules == 0,
	}
	if !n.cfg.Observe {
		r.Trainer = hello.Builtin
	}
	return r
}

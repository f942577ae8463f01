package sim

import (
	"maps"
	"runtime"
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
)

// flooded is how much memory a node takes for so many more inputs of fresh keys.
func flooded(t *testing.T, n *Node, l *liar, count int, flood func(l *liar) []byte) int64 {
	t.Helper()
	before := heap()
	for range count {
		m, err := wire.Open(n.w.run, flood(l))
		if err != nil {
			t.Fatal(err)
		}
		n.do(func() { n.machine.Step(n.clock(), gossip.Received{From: l.n.id, Message: m}) })
		clear(n.w.verifier.headers) // the simulator's own memory, and the liar's
		clear(n.w.checks.ledger)
		clear(n.w.checks.faulty)
		clear(n.w.checks.caught)
		clear(l.payloads)
		l.forgotten += len(l.keys)
		l.keys = nil
	}
	n.w.RunFor(10 * diskMs)
	return heap() - before
}

func heap() int64 {
	for range 2 { // what pools keep goes with the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What keys that are free to make can have a node remember is bounded: twice as
// much of a flood takes no more memory.
func TestFloodsAreBounded(t *testing.T) {
	const (
		fill  = 5000      // more than any table of a node holds
		slack = 128 << 10 // of a heap that is measured, not counted: less than a name of 32 bytes of each
	)
	floods := map[string]func(l *liar) []byte{
		"headers of the open round": func(l *liar) []byte { return l.bareHeader(l.freshKey(), 0, 1) },
		"headers of rounds ahead":   func(l *liar) []byte { return l.bareHeader(l.freshKey(), 0, 3+uint32(l.forgotten)%6) },
		"headers of no round":       func(l *liar) []byte { return l.bareHeader(l.freshKey(), 0, 1<<31) },
		"heartbeats": func(l *liar) []byte {
			b := wire.Heartbeat{Incarnation: 1, Seq: 1, State: wire.Training, PeriodMs: heartbeat, Closed: []uint32{9}, Unpublished: []uint64{9}}
			return wire.EncodeHeartbeat(l.freshKey(), l.n.w.run, b)
		},
		"equivocation proof": func(l *liar) []byte {
			key := l.freshKey()
			return wire.EncodeEquivocation(wire.Equivocation{A: l.forgeBy(key, 0, 1), B: l.forgeSecond(key, 0, 1)})
		},
	}
	for i, name := range slices.Sorted(maps.Keys(floods)) {
		flood := floods[name]
		if !taken(i+1, 3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := attackTest{kind: PayloadMissing}.scenario(attackSeed)
			w, err := New(s)
			if err != nil {
				t.Fatal(err)
			}
			n, l := w.nodes[0], w.nodes[honestNodes].liar
			first := flooded(t, n, l, fill, flood)
			second := flooded(t, n, l, fill, flood)
			if second > slack {
				// A map of bounded size whose keys change grows once, when by its seed one of its tables
				// is full. One without a bound grows again before its keys have doubled.
				second = max(flooded(t, n, l, fill, flood), flooded(t, n, l, fill, flood))
			}
			t.Logf("%d KiB for the first %d, %d KiB for as many again", first>>10, fill, second>>10)
			if second > slack {
				t.Errorf("takes %d bytes for %d, and %d more for as many again", first, fill, second)
			}
			if w.Err() != nil {
				t.Error(w.Err())
			}
		})
	}
}

// What fresh keys prove against themselves excludes nobody who matters. A node stores what
// it keeps in memory. That is little where it did not know their deltas, and no more
// than a round has room for where it did.
func TestEquivocationOnDiskIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		says  func(a, b wire.SignedHeader) [][]byte
		least int
		most  int
	}{
		{"proofs", func(a, b wire.SignedHeader) [][]byte {
			return [][]byte{wire.EncodeEquivocation(wire.Equivocation{A: a, B: b})}
		}, 32, 32},
		{"two headers", func(a, b wire.SignedHeader) [][]byte {
			return [][]byte{wire.EncodeHeader(a, nil), wire.EncodeHeader(b, nil)}
		}, 512, 512 + 32},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, err := New(attackTest{kind: PayloadMissing}.scenario(attackSeed))
			if err != nil {
				t.Fatal(err)
			}
			n, l := w.nodes[0], w.nodes[honestNodes].liar
			for range 1500 {
				key := l.freshKey()
				for _, b := range c.says(l.forgeBy(key, 0, 1), l.forgeSecond(key, 0, 1)) {
					m, err := wire.Open(w.run, b)
					if err != nil {
						t.Fatal(err)
					}
					n.do(func() { n.machine.Step(n.clock(), gossip.Received{From: l.n.id, Message: m}) })
				}
			}
			w.RunFor(100)
			if _, _, got := n.disk.Sizes(); got < c.least || got > c.most {
				t.Errorf("%d proofs about one round are on disk, want %d to %d", got, c.least, c.most)
			}
		})
	}
}

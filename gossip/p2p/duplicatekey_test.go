package p2p

import (
	"errors"
	"testing"
)

// later is another process of a person.
func later(seed byte) Config {
	p := newPerson(seed)
	p.record.StartedMs = 2000
	p.seq.Store(2001)
	return p.config()
}

// A process that follows another one is let in, however many connections lead to
// it.
func TestRestartIsNoDuplicate(t *testing.T) {
	a, first := start(t, newPerson(1).config()), start(t, newPerson(2).config())
	join(t, first, a)
	closeHost(t, first)
	next[PeerDown](t, a)
	second := start(t, later(2))
	join(t, second, a)
	dial(t, a, second)
	second.Renew()
	if up := a.Connected(); len(up) != 1 || up[0] != second.ID() {
		t.Errorf("connected: %v", up)
	}
}

// A connection at whose other end nobody lives any more does not keep a process
// out that follows.
func TestDeadConnectionIsNoDuplicate(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		a, first := w.host(newPerson(1).config()), w.host(newPerson(2).config())
		join(t, first, a)
		conns := a.host.Network().Conns()
		closeHost(t, first)
		if len(conns) != 1 || a.answers(conns[0]) == nil {
			t.Errorf("a process that is gone answers on %d connections", len(conns))
		}
	})
}

func TestVerdictOfADuplicateKey(t *testing.T) {
	if err := refusedAs([]byte("run: other")); errors.Is(err, ErrDuplicateKey) || !errors.Is(err, ErrRefusedByPeer) {
		t.Errorf("another reason: %v", err)
	}
	if err := refusedAs(verdict(&duplicateKeyError{})); !errors.Is(err, ErrDuplicateKey) {
		t.Errorf("a duplicate key: %v", err)
	}
}

package p2p

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"atoll/gossip/wire"
)

// ring connects each host to the next and to the one after that.
func ring(t *testing.T, hosts []*Host) {
	t.Helper()
	for i, h := range hosts {
		dial(t, h, hosts[(i+1)%len(hosts)])
		dial(t, h, hosts[(i+2)%len(hosts)])
	}
	time.Sleep(5 * time.Second) // the mesh forms
	for _, h := range hosts {
		drain(h)
	}
}

func TestMessageReachesEveryone(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(8)
		ring(t, hosts)
		const messages = 20
		for i := range messages {
			if err := hosts[i%2].Publish([]byte(fmt.Sprint("message ", i))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		others := 0
		for i, h := range hosts {
			events := drain(h)
			want := messages
			if i < 2 {
				want /= 2 // its own do not come back
			}
			if n := count[Message](events); n != want {
				t.Errorf("host %d got %d messages, want %d", i, n, want)
			}
			others += checkForwarders(t, h, events)
			if g := h.Stats().Gossip; int(g.Delivered) != want || int(g.Duplicates) != copies(events) {
				t.Errorf("host %d: stats %+v, and %d copies came", i, g, copies(events))
			}
		}
		if others == 0 {
			t.Error("nobody else has a message in a mesh that has cycles")
		}
	})
}

// copies counts the messages that came once more.
func copies(events []Event) (n int) {
	for _, e := range events {
		if has, ok := e.(Has); ok && has.Brought {
			n++
		}
	}
	return n
}

// checkForwarders checks that connected peers brought messages and had them, others than
// brought the first copy, and counts the latter.
func checkForwarders(t *testing.T, h *Host, events []Event) (others int) {
	t.Helper()
	first := map[wire.Digest]wire.PeerID{}
	for _, e := range events {
		switch e := e.(type) {
		case Message:
			first[e.ID] = e.From
			if e.ID != wire.Sum(e.Data) {
				t.Errorf("id %v of message %q", e.ID, e.Data)
			}
			checkConnected(t, h, e.From)
		case Has:
			if first[e.ID] != e.From {
				others++
			} else if e.Brought {
				t.Errorf("%v brought %v twice", e.From, e.ID)
			}
			checkConnected(t, h, e.From)
		}
	}
	return others
}

func checkConnected(t *testing.T, h *Host, id wire.PeerID) {
	t.Helper()
	for _, c := range h.Connected() {
		if c == id {
			return
		}
	}
	t.Errorf("forwarder %v is not connected", id)
}

func TestSizeLimitOfMessages(t *testing.T) {
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		time.Sleep(2 * time.Second)
		largest := bytes.Repeat([]byte("x"), wire.MaxMessage)
		if err := a.Publish(largest); err != nil {
			t.Fatal(err)
		}
		if m := next[Message](t, b); !bytes.Equal(m.Data, largest) || m.From != a.ID() {
			t.Errorf("%d bytes from %v", len(m.Data), m.From)
		}
		if err := a.Publish(append(largest, 'x')); !errors.Is(err, wire.ErrSize) {
			t.Errorf("publish of too much: %v", err)
		}
	})
}

func TestInboxDropsHoldersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newInbox(4)
		for range 3 {
			q.put(Has{})
		}
		for range 5 {
			q.put(Message{})
		}
		q.put(Refused{})
		for range 5 {
			q.put(PeerUp{})
		}
		q.put(PeerDown{})
		want := Dropped{Holders: 1, Messages: 3, Events: 2}
		if got := q.lost(); got != want {
			t.Errorf("dropped %+v, want %+v", got, want)
		}
		if n := len(q.waiting); n != 2+2+4+1 {
			t.Errorf("%d waiting", n)
		}
	})
}

// A reader that does not read must not stop gossip, nor lose a PeerDown.
func TestSlowReaderOfEvents(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		slow := newPerson(1).config()
		slow.Inbox = 10
		a, b, c := w.host(slow), w.host(newPerson(2).config()), w.host(newPerson(3).config())
		dial(t, b, a)
		dial(t, a, c)
		time.Sleep(2 * time.Second)
		for i := range 100 {
			if err := b.Publish([]byte(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		if n := count[Message](drain(c)); n != 100 {
			t.Errorf("%d messages passed the slow reader, want 100", n)
		}
		closeHost(t, b)
		time.Sleep(time.Second)
		lost := a.Stats().Dropped.Messages
		events := drain(a)
		if n := count[Message](events); n+int(lost) != 100 || lost == 0 {
			t.Errorf("%d messages read and %d dropped, want 100 in all", n, lost)
		}
		if count[PeerUp](events) != 2 || count[PeerDown](events) != 1 {
			t.Errorf("ups and downs: %d, %d", count[PeerUp](events), count[PeerDown](events))
		}
	})
}

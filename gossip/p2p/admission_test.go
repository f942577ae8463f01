package p2p

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// A message whose author is not known is neither passed on nor counted against who brought it, and the
// node is told whom to ask. What others say passes.
func TestMessagesOfStrangers(t *testing.T) {
	author := wire.PeerID{9}
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		knowing := newPerson(2).config()
		knowing.Check = func(_ wire.PeerID, raw []byte) error {
			if bytes.HasPrefix(raw, []byte("stranger")) {
				return &member.Stranger{Author: author}
			}
			return nil
		}
		a, b, c := w.host(newPerson(1).config()), w.host(knowing), w.host(newPerson(3).config())
		dial(t, a, b)
		dial(t, b, c)
		time.Sleep(5 * time.Second)
		drain(b)
		drain(c)
		for range 30 { // enough to make a peer unheard, if they counted
			for _, text := range []string{"stranger ", "known "} {
				if err := a.Publish([]byte(text + time.Now().String())); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		if n := count[Stranger](drain(b)); n != 30 {
			t.Errorf("told of %d messages of strangers", n)
		}
		var passed int
		for _, text := range gets(c) {
			if strings.HasPrefix(text, "stranger") {
				t.Fatalf("%q was passed on", text)
			}
			passed++
		}
		if passed != 30 {
			t.Errorf("%d of 30 messages passed", passed)
		}
	})
}

// Who is not admitted has no session, and both sides say why.
func TestOnlyWhoIsAdmitted(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		guest, stranger := newPerson(1), newPerson(3)
		guest.record.Certificate = []byte("guest")
		host := newPerson(2).config()
		host.Admit = func(r hello.Record) error {
			if string(r.Certificate) != "guest" {
				return errors.New("guests only")
			}
			return nil
		}
		g, h, s := w.host(guest.config()), w.host(host), w.host(stranger.config())
		dial(t, g, h)
		time.Sleep(time.Second)
		if n := count[PeerUp](drain(h)); n != 1 {
			t.Errorf("%d guests", n)
		}
		_, err := s.Dial(t.Context(), h.Addrs()[0])
		if !errors.Is(err, ErrRefusedByPeer) || !errors.Is(err, ErrNotAdmitted) || !strings.Contains(err.Error(), "guests only") {
			t.Errorf("the stranger is told %v", err)
		}
		time.Sleep(time.Second)
		events := drain(h)
		if count[PeerUp](events) != 0 || count[Refused](events) != 1 || !slices.ContainsFunc(events, func(e Event) bool { r, ok := e.(Refused); return ok && errors.Is(r.Reason, ErrNotAdmitted) }) {
			t.Errorf("at the host: %v", events)
		}
		if n := len(h.host.Network().ConnsToPeer(s.host.ID())); n != 0 {
			t.Errorf("%d connections left", n)
		}
		looker := newPerson(4)
		looker.record.Visits = true
		if _, err := w.host(looker.config()).Dial(t.Context(), h.Addrs()[0]); err == nil || !strings.Contains(err.Error(), "guests only") {
			t.Errorf("who only looks is told %v", err)
		}
		time.Sleep(time.Second)
		if events := drain(h); count[Refused](events) != 0 {
			t.Errorf("a refusal is told of who only looks: %v", events)
		}
	})
}

// Who looked and stays connected is up once its record says that it takes part, as if it had come then.
func TestWhoLookedTakesPart(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		looker := newPerson(1)
		looker.record.Visits = true
		l, h := w.host(looker.config()), w.host(newPerson(2).config())
		dial(t, l, h)
		time.Sleep(time.Second) // nothing reads the record meanwhile
		looker.record.Visits = false
		looker.seq.Store(2)
		l.Renew()
		for _, visits := range []bool{true, false} {
			if e := next[PeerUp](t, h); e.Record.Visits != visits {
				t.Errorf("%+v, want one that looks: %v", e, visits)
			}
		}
	})
}

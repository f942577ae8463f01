package p2p

import (
	"errors"
	"strings"
	"testing"

	"atoll/gossip/hello"
)

// speaking is a host on loopback whose program speaks a protocol, with minor versions from least to
// newest.
func speaking(t *testing.T, seed byte, protocol, least, newest uint32, agent string) *Host {
	t.Helper()
	p := newPerson(seed)
	p.record.Protocol, p.record.LeastMinor, p.record.Minor, p.record.Agent = protocol, least, newest, agent
	h := start(t, p.config())
	h.Handle(echo)
	return h
}

// Two programs of different minor versions settle on the newest that both speak, whoever dials, and
// go on talking.
func TestMinorVersionsSettleOnTheLower(t *testing.T) {
	for _, olderDials := range []bool{true, false} {
		older := speaking(t, 1, hello.Protocol, 0, 1, "atoll/older")
		newer := speaking(t, 2, hello.Protocol, 1, 3, "atoll/newer")
		from, to := newer, older
		if olderDials {
			from, to = older, newer
		}
		dial(t, from, to)
		for h, agent := range map[*Host]string{older: "atoll/newer", newer: "atoll/older"} {
			if up := next[PeerUp](t, h); up.Session.Protocol != hello.Protocol || up.Session.Minor != 1 || up.Record.Agent != agent {
				t.Errorf("older dials %v: with %s %+v", olderDials, up.Record.Agent, up.Session)
			}
		}
		for h, peer := range map[*Host]*Host{older: newer, newer: older} {
			if got, err := h.Call(t.Context(), peer.ID(), []byte("hi"), 10); err != nil || string(got[1:]) != "hi" {
				t.Errorf("older dials %v: %q, %v", olderDials, got, err)
			}
			if s := h.Session(peer.ID()); s.Minor != 1 {
				t.Errorf("older dials %v: %+v", olderDials, s)
			}
		}
	}
}

// A node that is renewed by a newer program settles anew, with the connection as it is.
func TestMinorVersionFollowsTheRecord(t *testing.T) {
	old, newer := newPerson(1), speaking(t, 2, hello.Protocol, 0, 3, "atoll/newer")
	h := start(t, old.config())
	join(t, h, newer)
	old.record.Minor = 2
	old.seq.Add(1)
	h.Renew()
	if changed := next[RecordChanged](t, newer); changed.Session.Minor != 2 {
		t.Errorf("%+v", changed.Session)
	}
}

// Programs of two major versions, and of minor ones that do not meet, refuse each other. Both sides
// say which versions those are, of which programs, and which side to upgrade.
func TestOtherVersionsAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		protocol, least, newest uint32
		says                    string
	}{
		{hello.Protocol + 1, 0, 0, "3 (atoll/newer)"},
		{hello.Protocol, 2, 4, "2.2..2.4 (atoll/newer)"},
	} {
		for _, olderDials := range []bool{true, false} {
			older, newer := speaking(t, 1, hello.Protocol, 0, 1, "atoll/older"), speaking(t, 2, c.protocol, c.least, c.newest, "atoll/newer")
			from, to := newer, older
			if olderDials {
				from, to = older, newer
			}
			_, err := from.Dial(t.Context(), to.Addrs()[0])
			if err == nil {
				t.Fatalf("%+v: connected", c)
			}
			wantNamed(t, "who dials", err, c.says)
			for h, remedy := range map[*Host]string{older: "this node is the older one", newer: "the peer is the older one"} {
				reason := next[Refused](t, h).Reason
				var refusal *hello.Refusal
				if !errors.As(reason, &refusal) || refusal.Field != hello.FieldProtocol || !strings.Contains(reason.Error(), remedy) {
					t.Errorf("%+v: refused for %v, without %q", c, reason, remedy)
				}
				wantNamed(t, "the event", reason, c.says)
				if n := len(h.Connected()); n != 0 {
					t.Errorf("%+v: %d peers connected", c, n)
				}
			}
		}
	}
}

// wantNamed fails a test whose error does not name both versions with their programs.
func wantNamed(t *testing.T, who string, err error, newer string) {
	t.Helper()
	for _, want := range []string{"protocol", "2.0..2.1 (atoll/older)", newer} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q does not say %q", who, err, want)
		}
	}
}

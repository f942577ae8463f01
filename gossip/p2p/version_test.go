package p2p

import (
	"errors"
	"strings"
	"testing"

	"atoll/gossip/hello"
)

// speaking is a host on loopback whose program speaks a protocol.
func speaking(t *testing.T, seed byte, protocol uint32, agent string) *Host {
	t.Helper()
	p := newPerson(seed)
	p.record.Protocol, p.record.Agent = protocol, agent
	h := start(t, p.config())
	h.Handle(echo)
	return h
}

// Programs of two protocols refuse each other. Both sides say which these are, of which programs,
// and which side to upgrade.
func TestOtherVersionsAreRefusedByName(t *testing.T) {
	for _, olderDials := range []bool{true, false} {
		older, newer := speaking(t, 1, hello.Protocol, "atoll/older"), speaking(t, 2, hello.Protocol+1, "atoll/newer")
		from, to := newer, older
		if olderDials {
			from, to = older, newer
		}
		_, err := from.Dial(t.Context(), to.Addrs()[0])
		if err == nil {
			t.Fatal("connected")
		}
		wantNamed(t, "who dials", err)
		for h, remedy := range map[*Host]string{older: "this node is the older one", newer: "the peer is the older one"} {
			reason := next[Refused](t, h).Reason
			var refusal *hello.Refusal
			if !errors.As(reason, &refusal) || refusal.Field != hello.FieldProtocol || !strings.Contains(reason.Error(), remedy) {
				t.Errorf("refused for %v, without %q", reason, remedy)
			}
			wantNamed(t, "the event", reason)
			if n := len(h.Connected()); n != 0 {
				t.Errorf("%d peers connected", n)
			}
		}
	}
}

// wantNamed fails a test whose error does not name both versions with their programs.
func wantNamed(t *testing.T, who string, err error) {
	t.Helper()
	for _, want := range []string{"protocol", "2 (atoll/older)", "3 (atoll/newer)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q does not say %q", who, err, want)
		}
	}
}

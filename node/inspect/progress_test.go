package inspect

import (
	"testing"
	"time"

	"atoll/gossip/wire"
	"atoll/node/inspect/ledgertest"
	"atoll/node/status"
)

// A replay tells how far it is, up to the end.
func TestReplaysTellProgress(t *testing.T) {
	l := ledgertest.New(t).Rounds(4)
	dir := l.Close()
	for name, replay := range map[string]func(told func(done, all uint64)) error{
		"verify": func(told func(done, all uint64)) error {
			_, err := Verify(WithProgress(t.Context(), told), dir)
			return err
		},
		"load": func(told func(done, all uint64)) error {
			_, _, _, err := LoadModel(WithProgress(t.Context(), told), dir)
			return err
		},
	} {
		calls := uint64(0)
		err := replay(func(done, all uint64) {
			if calls++; done != calls || all != 8 {
				t.Errorf("%s: %d of %d, want %d of 8", name, done, all, calls)
			}
		})
		if err != nil || calls != 8 {
			t.Errorf("%s: told %d times of two fragments of 4 rounds, %v", name, calls, err)
		}
	}
}

// How others reach a running node is said, and that nobody does is a fault.
func TestDoctorOfTheWayIn(t *testing.T) {
	at, here := []string{"/ip4/192.0.2.1/tcp/1"}, []string{"/ip4/127.0.0.1/tcp/1", "/ip6/fe80::1/tcp/1", "/ip4/192.168.1.5/tcp/1"}
	for _, c := range []struct {
		reach status.Reach
		want  string
		ok    bool
	}{
		{status.Reach{Public: true, Outside: at}, ReachOpen, true},
		{status.Reach{Outside: at, Near: at}, ReachHelped, true},
		{status.Reach{Near: at}, ReachNear, true},
		{status.Reach{Outside: here}, ReachNear, true},
		{status.Reach{Outside: []string{"/ip4/192.168.1.9/tcp/1/p2p/12D3KooWX/p2p-circuit"}}, ReachHelped, true},
		{status.Reach{}, ReachNobody, false},
	} {
		d := &doctor{snapshot: status.Snapshot{Net: status.Net{Reach: c.reach}}, Checkup: Checkup{Running: true, OK: true, Reach: ReachUnknown}}
		d.checkReach()
		if f := d.Findings[0]; d.Reach != c.want || f.OK != c.ok || d.OK != c.ok || !f.OK && f.Remedy == "" {
			t.Errorf("%+v: %s, %+v", c.reach, d.Reach, f)
		}
	}
	dir := folderWithKey(t, 1).Close()
	if c := checkup(t, dir); c.Reach != ReachUnknown {
		t.Errorf("a node that does not run: %q", c.Reach)
	}
}

// There are no parts of tokens, whatever the shares of the fragments are.
func TestLedgerHasWholeTokens(t *testing.T) {
	a := LedgerAuthor{Tokens: 1000448.0000000001}
	b := ledgerBuilder{folder: &folder{}, authors: map[wire.PeerID]*LedgerAuthor{{1}: &a}}
	if got := b.finish().Authors[0]; got.Tokens != 1000448 || got.Share != 1 {
		t.Errorf("%+v", got)
	}
}

func TestTimesHaveThreeDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{2388050 * time.Microsecond: "2.39s", 0: "0s", 720 * time.Microsecond: "720µs", 123456 * time.Microsecond: "123ms", 999999 * time.Microsecond: "1s", 75 * time.Second: "1m15s"} {
		if got := threeDigits(d).String(); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

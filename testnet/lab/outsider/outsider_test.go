package outsider

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multistream"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/testnet/lab/trials"
)

// testRun is a run with one owner and one member, as an outsider knows it.
func testRun() (k knowledge, members *member.Table, owner ed25519.PrivateKey) {
	owner = keyOf("run owner", 0)
	run := wire.RunID{4, 2}
	k = knowledge{
		run: run, fragments: 3, startedMs: 1_700_000_000_000, codec: 4, elsewhere: "/ip4/127.0.0.77/tcp/9",
		expired: member.Issue(owner, run, member.Invite{ExpiresMs: 1_700_000_000_001}, keyOf("invite", 1)),
		used:    member.Issue(owner, run, member.Invite{Uses: 1}, keyOf("used invite", 0)),
		taken:   member.Issue(owner, run, member.Invite{Key: wire.PeerIDOf(keyOf("taken", 0))}, nil),
	}
	members = member.NewTable(run, []wire.PeerID{wire.PeerIDOf(owner)})
	c := member.Issue(owner, run, member.Invite{}, keyOf("good invite", 0)).AdmitOther(run, wire.PeerIDOf(keyOf("member", 0)))
	if _, err := members.Add(c); err != nil {
		panic(err)
	}
	k.members = []member.Certificate{c}
	return k, members, owner
}

// Nothing of what an outsider shows admits it, and each is refused for what it is and not for a mistake in the record.
func TestForgeriesAdmitNobody(t *testing.T) {
	k, members, owner := testRun()
	now := k.startedMs + 2000 // an invite ends at a whole second
	good := keyOf("good", 0)
	c := member.Issue(owner, k.run, member.Invite{}, keyOf("good invite", 0)).AdmitOther(k.run, wire.PeerIDOf(good))
	if err := admit(members, k.record(good, c.Encode()), now); err != nil {
		t.Fatalf("a good certificate: %v", err)
	}
	reasons := map[string]string{
		"none": "no certificate", "wrong issuer": "no owner of this run", "wrong run": "no owner of this run", "an owner's signature of another invite": "signature does not match",
		"another node's": "record of another node", "garbled": "", "cut short": "want 205", "expired": "has expired", "for another node": "alone", "expiry taken out": "signature does not match",
	}
	for _, f := range append(append([]forgery{}, forgeries...), unusable...) {
		for n := range 3 {
			key := keyOf("forger", n)
			err := admit(members, k.record(key, f.make(k, key)), now)
			reason, known := reasons[f.name]
			if err == nil || !known || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s: %v, want %q", f.name, err, reason)
			}
		}
	}
}

// admit judges a record as a node does.
func admit(members *member.Table, s hello.Signed, nowMs int64) error {
	parsed, err := hello.Parse(s.Encode())
	if err != nil {
		return err
	}
	r, err := parsed.Open()
	if err != nil {
		return err
	}
	return members.Admit(r, nowMs)
}

// The messages of a flood are valid but for their authors, whom nobody admitted, and are the same each time.
func TestMessagesOfTheFlood(t *testing.T) {
	k, members, _ := testRun()
	pool, again := k.messages(), k.messages()
	seen := map[string]bool{}
	for i, m := range pool {
		if !bytes.Equal(m, again[i]) {
			t.Fatalf("message %d is another one the second time", i)
		}
		opened, err := wire.Open(k.run, m)
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		stranger := (*member.Stranger)(nil)
		if err := member.VerifyMessage(k.run, members, opened, m); !errors.As(err, &stranger) {
			t.Fatalf("message %d is taken: %v", i, err)
		}
		seen[string(m)] = true
	}
	if len(seen) != poolMessages {
		t.Errorf("%d messages differ, want %d", len(seen), poolMessages)
	}
}

func TestKeysFollowFromTheirNumber(t *testing.T) {
	if !keyOf("a", 1).Equal(keyOf("a", 1)) || keyOf("a", 1).Equal(keyOf("a", 2)) || keyOf("a", 1).Equal(keyOf("b", 1)) {
		t.Error("keys do not follow from purpose and number")
	}
}

// No two tries of an attack have one number, whatever the lanes.
func TestLanesHaveNumbersOfTheirOwn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tries := make(chan int)
	a := attack{lanes: 3, every: time.Millisecond, try: func(_ context.Context, _ *outsider, _ target, n int) error {
		select {
		case tries <- n:
		case <-ctx.Done():
		}
		return nil
	}}
	ended := make(chan struct{})
	go func() { (&outsider{}).attack(ctx, a, make([]target, 2)); close(ended) }()
	seen := map[int]bool{}
	for range 30 {
		n := <-tries
		if seen[n] {
			t.Errorf("number %d twice", n)
		}
		seen[n] = true
	}
	cancel()
	<-ended
}

func TestListenerTellsWhoWroteWhat(t *testing.T) {
	k, _, _ := testRun()
	l := &listener{strange: map[wire.PeerID]bool{wire.PeerIDOf(keyOf("author", 1)): true}, first: map[wire.Digest]time.Time{}}
	honest, strange, began := k.heartbeat(keyOf("member", 0), 1), k.heartbeat(keyOf("author", 1), 1), time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		data []byte
		at   time.Duration
		want hearing
	}{
		{honest, 0, hearing{Honest: 1}},
		{honest, againAfter, hearing{Honest: 1}}, // another way brought it
		{strange, 0, hearing{Honest: 1, Strangers: 1}},
		{[]byte("no message"), 0, hearing{Honest: 1, Strangers: 2}},
		{honest, againAfter + 1, hearing{Honest: 1, Strangers: 2, Again: 1}},
	} {
		if l.message(wire.Sum(c.data), c.data, began.Add(c.at)); l.hears != c.want {
			t.Errorf("after %q: %+v, want %+v", c.data[:4], l.hears, c.want)
		}
	}
	if len(l.heard()) != 1 {
		t.Errorf("%d messages to replay", len(l.heard()))
	}
}

func TestBystanderCounts(t *testing.T) {
	b, err := stand()
	if err != nil {
		t.Skipf("no address but 127.0.0.1 here: %v", err)
	}
	for range 3 {
		c, err := socket(t.Context(), target{address: b.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil { // it is closed once it was counted
			t.Error("the bystander says something")
		}
	}
	if n := b.dials.Load(); n != 3 {
		t.Errorf("counts %d of 3", n)
	}
	if err := b.close(); err != nil {
		t.Error(err)
	}
}

// A half-open stream begins as libp2p negotiates one.
func TestNamesOfProtocols(t *testing.T) {
	said := bytes.NewBuffer(append(named("/multistream/1.0.0"), named("/a/1")...))
	for _, want := range []protocol.ID{"/multistream/1.0.0", "/a/1"} {
		if got, err := multistream.ReadNextToken[protocol.ID](said); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

func TestTimeOfAProcess(t *testing.T) {
	line := "42 (a) b (c)) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 5 1 1"
	if d, err := readCPU([]byte(line)); d != 3*time.Second || err != nil {
		t.Errorf("%v, %v", d, err)
	}
	for _, wrong := range []string{"", "42 (a) S 1", "42 (a) S 1 42 42 0 -1 4194304 100 0 0 0 x 50 0"} {
		if _, err := readCPU([]byte(wrong)); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}

func TestRows(t *testing.T) {
	all := []Trial{
		{Attack: calm, Turn: 1, Outcome: Outcome{Trained: 90, Folded: 100}}, {Attack: calm, Turn: 1, Order: 3, Outcome: Outcome{Trained: 110, Folded: 100}},
		{Attack: "flood", Turn: 1, Outcome: Outcome{Trained: 98, Folded: 97, Heard: hearing{Honest: 5}, Files: 7}},
		{Attack: calm, Turn: 2, Outcome: Outcome{Trained: 200, Folded: 200}},
		{Attack: "flood", Turn: 2, Outcome: Outcome{Trained: 196, Folded: 194, Files: 6}},
	}
	flooded, _ := attackNamed("flood")
	rows := rowsOf([]attack{flooded}, all)
	if r := rows[1]; r.trained != 0.98 || r.folded != 0.97 || r.Files != 7 || len(r.missed()) != 0 || len(rows[0].missed()) != 0 {
		t.Errorf("%+v misses %v", r, r.missed())
	}
	for want, spoil := range map[string]func(*row){
		"trained": func(r *row) { r.trained = 0.969 }, "folded": func(r *row) { r.folded = 0.969 }, "passed on": func(r *row) { r.Heard.Strangers = 1 },
		"dials elsewhere": func(r *row) { r.Dials = 1 }, "let in": func(r *row) { r.Did.Admitted = 1 },
	} {
		r := rows[1]
		spoil(&r)
		if missed := r.missed(); len(missed) != 1 || missed[0] != want {
			t.Errorf("misses %v, want %s", missed, want)
		}
		r.admitted = true
		if free := want == "passed on" || want == "let in"; free != (len(r.missed()) == 0) {
			t.Errorf("who is let in by rule misses %v", r.missed())
		}
	}
	late := rows[1]
	late.Heard.Again = 1
	if late.name = replays; len(late.missed()) != 1 || len(rows[1].missed()) != 0 {
		t.Errorf("a replay that came misses %v", late.missed())
	}
	if n := strings.Count(head, "|"); strings.Count(rows[1].text(), "|")*2 != n {
		t.Error("the columns of head and rows differ in number")
	}
}

func TestTyped(t *testing.T) {
	s, err := parse([]string{"--quick", "flood", "replay"})
	if err != nil || s.runs != quickRuns || s.span != quickSpan || len(s.attacks) != 2 || s.attacks[1].name != "replay" {
		t.Errorf("%+v, %v", s, err)
	}
	if got, want := strings.Join(s.worldsOf(2), " "), "calm replay flood calm"; got != want {
		t.Errorf("the second turn is %s, want %s", got, want)
	}
	if s, err := parse(nil); err != nil || len(s.attacks) != len(attacks) || s.runs != usualRuns {
		t.Errorf("without words: %+v, %v", s, err)
	}
	for _, args := range [][]string{{"storm"}, {"--runs", "-1"}, {"--for", "1s"}, {"--nodes", "1"}, {"--pace", "0"}, {"--what"}} {
		if _, err := parse(args); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := parse([]string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
	for _, a := range attacks {
		if !strings.Contains(attackList(), a.about) || a.lanes < 1 || a.every <= 0 || a.try == nil {
			t.Errorf("attack %+v", a)
		}
	}
}

// A trial is taken from the file only for the same run.
func TestSameTrial(t *testing.T) {
	s := settings{nodes: 4, pace: time.Second, span: time.Minute}
	played := s.trial("flood", 1, 2)
	played.Trained = 5
	if !s.trial("flood", 1, 2).same(played) {
		t.Error("the same run is played again")
	}
	others := []Trial{s.trial("replay", 1, 2), s.trial("flood", 2, 2), s.trial("flood", 1, 3), {Attack: "flood", Turn: 1, Order: 2, Nodes: 5, PaceMs: 1000, SpanS: 60}}
	for _, o := range others {
		if s.trial("flood", 1, 2).same(o) {
			t.Errorf("%+v is taken for it", o)
		}
	}
	if trials.Median([]float64{1, 3}) != 2 {
		t.Error("the median of two is not their mean")
	}
}

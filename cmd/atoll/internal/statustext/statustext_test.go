package statustext

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/status"
)

// trainingStatus is a status in the middle of a run.
func trainingStatus() status.Snapshot {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return status.Snapshot{
		Identity: status.Identity{
			Run: strings.Repeat("ab", 32), Name: "opticks", Link: "atoll:abab,/ip4/192.0.2.1/tcp/4001/p2p/12D3KooW", Self: strings.Repeat("cd", 32),
			Role: "learner", State: "training", At: at,
		},
		Progress: status.Progress{
			Params: 824448, BudgetTokens: 3_000_000, TokensFolded: 750_000, TokensBeyond: 12_345, TokensPerS: 12_000, ETASeconds: 187.6,
			Step: 120, TokensTrained: 250_000, TrainLoss: 2.5, ValBPB: 2.75, ValBytes: 16 << 10, ValAtTokens: 740_000, LearningRate: 2e-3,
		},
		Agreement: status.Agreement{ChainDigest: strings.Repeat("12", 32), StateDigest: strings.Repeat("34", 32), Agreed: true},
		Fragments: []status.Fragment{
			{Closed: 7, Contributors: 3, Open: status.Open{Round: 8, Why: "no proposal", Text: "waits for a member to propose it"}},
			{Closed: 8, Contributors: 2, Open: status.Open{Round: 9, Why: "grace", Text: "waits for the delta of efefefefef, 2.1 s of at most 30.0 s", WaitedS: 2.1, MostS: 30}},
		},
		Peers: []status.Peer{
			{ID: strings.Repeat("cd", 32), Self: true, Role: "learner", State: "training", Hardware: "a CPU (2 threads)", Precision: "f32", Steps: 120, Tokens: 250_000, Share: 0.4, Weight: 0.5, TokensPerS: 6000, Upload: 2.5e6, UploadFull: true, MeasuredPerS: 7000},
			{ID: strings.Repeat("ef", 32), Role: "observer", State: "observing", LagS: 1.25, Share: 0},
			{Addr: "/ip4/198.51.100.7/tcp/1", State: "refused", Reason: "run: we have aa, peer has bb"},
		},
		Events:  []status.Event{{At: at, Kind: "connected", Peer: strings.Repeat("ef", 32), Text: "observer at /ip4/192.0.2.9/tcp/1"}},
		Net:     status.Net{SentBytes: 2048, ReceivedBytes: 1 << 20},
		Process: status.Process{RSSBytes: 100 << 20},
	}
}

func TestLines(t *testing.T) {
	training, over, moving := trainingStatus(), trainingStatus(), trainingStatus()
	over.Finished, moving.Agreed = true, false
	unequal := moving
	unequal.Finished = true
	own := over // of a model whose tokens are no bytes
	own.ValBPB, own.ValBytes, own.ValLoss, own.ValTokens = 0, 0, 3.21987, 16384
	unsaid, none := own, own
	unsaid.ValTokens = 0
	none.ValLoss, none.ValTokens = 0, 0
	lost := training
	lost.Disk, lost.Account.OwnUnpublished = "full", []uint64{24_000, 24_900}
	worse := none
	worse.History = []status.Point{{Val: 5.5}, {Val: 97}}
	for _, c := range []struct{ got, want string }{
		{progressLine(training), "training step 120  loss 2.500  folded 25.0 % of 3.00M  3m8s left  12.0k tokens/s  1 peer  2.750 bits/byte"},
		{EndLine(training), "left in order: 750k tokens folded; the same command goes on from here"},
		{EndLine(lost), "left: 750k tokens folded; 24.9k tokens of work were not published, as the disk is full, and are lost: make room or mend it before you leave"},
		{EndLine(over), "the run is over: 750k tokens folded, 2.750 bits/byte, where less is better, on 16.0 KiB of held-out text, state digest 3434343434"},
		{EndLine(own), "the run is over: 750k tokens folded, loss 3.220 nats/token on 16.4k tokens that the learner holds out, state digest 3434343434"},
		{EndLine(none), "the run is over: 750k tokens folded, state digest 3434343434"},
		{EndLine(worse), "the run is over: 750k tokens folded. The model predicts held-out text worse than it did (97, at first 5.5): do not use it"},
		{progressLine(own), "finished step 120  loss 2.500  folded 25.0 % of 3.00M  3m8s left  12.0k tokens/s  1 peer  held out 3.220 nats/token"},
		{qualityText(training), "2.750 bits/byte, where less is better, on 16.0 KiB of held-out text at 740k tokens"},
		{qualityText(own), "loss 3.220 nats/token on 16.4k tokens that the learner holds out at 740k tokens"},
		{qualityText(unsaid), "loss 3.220 nats/token on what the learner holds out at 740k tokens"},
		{qualityText(none), "not measured here; `atoll eval` does, for built-in models"},
		{agreedText(training, true), "equal on every live node"},
		{agreedText(over, false), "equal on every live node when this one ended"},
		{agreedText(moving, true), "changing, as it should while somebody trains; compared after that"},
		{agreedText(moving, false), "not compared: rounds were open when this one ended"},
		{agreedText(unequal, true), "not yet equal on every live node"},
		{agreedText(unequal, false), "not yet equal on every live node when this one ended"},
		{openText(over), "no round: the run is over"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// shown is what progress prints of some statuses.
func shown(t *testing.T, asJSON bool, end error, all ...status.Snapshot) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := NewProgress(&cli.Console{Out: &out, Err: &errs}, nil, asJSON, "second")
	p.line = time.Time{}
	for _, s := range all {
		p.print(s, false)
	}
	p.Finish(all[len(all)-1], end)
	p.Show()
	return out.String(), errs.String()
}

func TestProgress(t *testing.T) {
	joining := trainingStatus()
	joining.State, joining.Stage = "joining", "fetching snapshot (43 %)"
	joining.Events = nil
	cut := trainingStatus()
	cut.Peers = []status.Peer{{Self: true}, {State: status.Gone, Trained: true}}
	named := trainingStatus() // what the machine is called comes a little after it, and its line waits for that
	named.Peers[1].Label = "lab"
	stdout, stderr := shown(t, false, nil, joining, joining, trainingStatus(), cut, named)
	if want := joining.Link + "\n"; stdout != want {
		t.Errorf("stdout %q, want %q", stdout, want)
	}
	want := []string{
		"others join with",
		"to stop it: Ctrl-C publishes what is left and leaves; `atoll status second` says more",
		"joining: fetching snapshot (43 %)  (0s)", // the second status came too soon for another line
		progressLine(trainingStatus()),            // it does something new
		progressLine(cut),
		"03:04:05 connected lab: observer at /ip4/192.0.2.9/tcp/1",
		progressLine(named),
		progressLine(named), // the last one always shows
		EndLine(trainingStatus()),
		"this machine gave 40 % of what the model learned from",
	}
	if got := strings.Split(strings.TrimSpace(stderr), "\n"); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("stderr %q, want %q", got, want)
	}
}

func TestProgressJSON(t *testing.T) {
	stdout, stderr := shown(t, true, nil, trainingStatus(), trainingStatus())
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != 2 || stderr != "" {
		t.Fatalf("stdout %q, stderr %q; want the first and the last status", stdout, stderr)
	}
	var s status.Snapshot
	if err := json.Unmarshal([]byte(lines[1]), &s); err != nil || s.Step != 120 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestProgressOfFailure(t *testing.T) {
	if stdout, stderr := shown(t, true, errors.New("x"), status.Snapshot{}); stdout != "" || stderr != "" {
		t.Errorf("stdout %q, stderr %q; the error is for the caller to print", stdout, stderr)
	}
}

func TestPrintStatus(t *testing.T) {
	var b strings.Builder
	if err := Print(&b, trainingStatus(), true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"run      ababababab  opticks\n",
		"node     cdcdcdcdcd  learner, training\n",
		"model    824k parameters in 2 fragments\n",
		"folded   750k of 3.00M tokens (25.0 %), 12.0k tokens/s, 3m8s left\n",
		"         12.3k more do not count for budget and learning rate: `atoll ledger` says whose\n",
		"quality  2.750 bits/byte, where less is better, on 16.0 KiB of held-out text at 740k tokens\n",
		"here     step 120, 250k tokens trained, loss 2.500, learning rate 0.002, 100.0 MiB of memory\n",
		"digests  chain 1212121212  state 3434343434  equal on every live node\n",
		"traffic  2.05 kB sent, 1.05 MB received; the uplink carries 20.0 Mbit/s\n",
		"rounds   7(3) 8(2)  closed(contributors) per fragment\n",
		"open     round 9 of fragment 1: waits for the delta of efefefefef, 2.1 s of at most 30.0 s\n",
		"03:04:05 connected efefefefef",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestPrintPeers(t *testing.T) {
	var b strings.Builder
	if err := printPeers(&b, trainingStatus().Peers, time.Time{}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	for i, want := range []string{
		"PEER STATE HARDWARE PRECISION STEPS TOKENS SHARE WEIGHT TOK/S MBIT/S HEARD",
		"cdcdcdcdcd* training a CPU (2 … f32 120 250k 40.0 % 50.0 % 6.00k 20.0 here",
		"efefefefef observing - - 0 0 0.0 % - - - 1.2 s",
		"/ip4/1…/tcp/1 refused - - 0 0 0.0 % - - - -",
		"/ip4/198.51.100.7/tcp/1 refused: run: we have aa, peer has bb",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("line %d: %q, want %q", i, got, want)
		}
	}
}

// A node that stopped shows when it heard its peers: their ages would stand still.
func TestPeersOfAStoppedNode(t *testing.T) {
	s := trainingStatus()
	s.Peers[1].State, s.Peers[1].LagS = status.Gone, 35
	s.Peers[2].LagS = 3 * 24 * 3600
	var b strings.Builder
	if err := Print(&b, s, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  here\n", " gone ", "  03:03\n", "  Dec 30\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "35 s") {
		t.Errorf("an age stands still:\n%s", b.String())
	}
}

func TestPrintPeersTellsWhoIsRelayed(t *testing.T) {
	var b strings.Builder
	peers := []status.Peer{
		{ID: strings.Repeat("ab", 32), State: "training", Link: status.LinkRelayed, Relay: "12D3KooWA"},
		{ID: strings.Repeat("cd", 32), State: "training", Link: status.LinkPunching, Relay: "12D3KooWB"},
		{ID: strings.Repeat("ef", 32), State: "training", Link: status.LinkDirect},
	}
	if err := printPeers(&b, peers, time.Time{}); err != nil {
		t.Fatal(err)
	}
	_, notes, _ := strings.Cut(b.String(), "efefefefef")
	_, notes, _ = strings.Cut(notes, "\n")
	want := "ababababab relayed through 12D3KooWA\ncdcdcdcdcd relayed through 12D3KooWB, a direct connection is being tried\n"
	if notes != want {
		t.Errorf("notes %q, want %q", notes, want)
	}
}

// A guest is told what that means and how it ends, wherever it looks; of a member nothing is said.
func TestGuestsAreNamed(t *testing.T) {
	s := trainingStatus()
	shownOf := func() (peers, status, join string) {
		var a, b strings.Builder
		if err := errors.Join(printPeers(&a, s.Peers, time.Time{}), Print(&b, s, true)); err != nil {
			t.Fatal(err)
		}
		_, join = shown(t, false, nil, s)
		return a.String(), b.String(), join
	}
	if peers, status, join := shownOf(); strings.Contains(peers+status+join, "guest") {
		t.Errorf("of members:\n%s%s%s", peers, status, join)
	}
	s.Peers[1].Guest = true
	if peers, status, _ := shownOf(); !strings.Contains(peers, "\nguests, whose work counts a little: efefefefef\n") || strings.Contains(status, "\nguest ") {
		t.Errorf("of another:\n%s%s", peers, status)
	}
	s.Peers[0].Guest = true
	peers, status, join := shownOf()
	const what = "of this run: its work counts a little; the owner can make it a member with `atoll invite --for "
	full := strings.Repeat("cd", 32) + "`\n"
	if !strings.Contains(peers, ": cdcdcdcdcd*, efefefefef\n") || !strings.Contains(status, "\nguest    "+what+full) || !strings.Contains(join, "\nthis node is a guest "+what+full) {
		t.Errorf("of this one:\n%s%s%s", peers, status, join)
	}
}

// What is wrong stands at the top of a status, with what to do.
func TestStatusShowsAlarms(t *testing.T) {
	s := status.Snapshot{Peers: []status.Peer{{Self: true}}}
	s.Alarms = []status.Alarm{{Kind: "state wrong", Who: strings.Repeat("ef", 32), Text: "what was found", Remedy: "test its memory"}}
	var b strings.Builder
	if err := Print(&b, s, false); err != nil || !strings.Contains(b.String(), "\nWRONG    00:00:00 state wrong efefefefef: what was found; do: test its memory\n") {
		t.Errorf("%v:\n%s", err, b.String())
	}
}

// Peers and members are one table. Who was admitted and trained nothing has a note, and who is revoked a row.
func TestMembersAmongPeers(t *testing.T) {
	here, gone, own, invite := strings.Repeat("cd", 32), strings.Repeat("ef", 32), strings.Repeat("ab", 32), strings.Repeat("01", 32)
	rows := Members([]status.Peer{{ID: here, State: "contributing", Trust: 1}}, []status.Member{
		{ID: here, Invite: invite, Uses: 3, ExpiresMs: 1_700_000_000_000}, {ID: gone, Invite: invite, Uses: 3, ExpiresMs: 1_700_000_000_000, Revoked: true}, {ID: own, Invite: own, Guest: true},
	})
	var b strings.Builder
	if err := PrintMembers(&b, rows, time.Time{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" INVITE\n", "cdcdcdcdcd  contributing ", " 0101010101\n", "efefefefef  revoked ", "admitted, trained nothing and not here: ababababab\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "invite 0101010101 is for 3 machines, 2 came; lasts until 2023-11-1"); n != 1 {
		t.Errorf("%d times the limits of one invite:\n%s", n, b.String())
	}
	if _, err := json.Marshal(rows); err != nil || len(rows) != 3 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	for want, r := range map[string]Member{
		"invite 0101010101 is revoked: nobody comes in by it any more, 2 came": {Peer: rows[0].Peer, Invite: invite, Uses: 3, ExpiresMs: 1_700_000_000_000, Ended: true},
		"invite 0101010101 is for 1 machine, 2 came":                           {Peer: rows[0].Peer, Invite: invite, Uses: 1},
		"": {Peer: status.Peer{ID: own}, Invite: own, Ended: true},
	} {
		if got := limitOf(r, rows); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPeersFitTheScreen(t *testing.T) {
	peers := []status.Peer{{
		ID: strings.Repeat("cd", 32), Self: true, State: "connecting", Hardware: "AMD EPYC 7B13 64-Core Processor (2 threads)", Precision: "bf16",
		Steps: 123_456, Tokens: 123_456, Share: 1, Weight: 1, TokensPerS: 123_456, Upload: 125e6, UploadFull: true,
	}, {Addr: "/ip4/198.51.100.7/tcp/4001/p2p/12D3KooW", State: "refused", LagS: 123.4}}
	var b strings.Builder
	if err := errors.Join(printPeersWith(&b, peers, time.Time{}, "INVITE", []string{"own", "0101010101"}, nil), printPeers(&b, peers, time.Time{})); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(b.String(), "\n") {
		if n := len([]rune(line)); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// What peers say of themselves cannot take over the terminal of atoll status, peers and join either.
func TestTextOfPeersIsHarmless(t *testing.T) {
	s := trainingStatus()
	const nasty = "x\x1b[2J\r\ny\u202e"
	s.Peers[1].Hardware, s.Peers[1].State, s.Peers[1].Precision, s.Peers[1].Reason = nasty, nasty, nasty, nasty
	s.Peers[1].Link, s.Peers[1].Relay = status.LinkRelayed, nasty
	s.Events[0].Text, s.Events[0].Kind, s.Events[0].Peer = nasty, nasty, nasty
	s.Name, s.Stage = nasty, nasty
	var b strings.Builder
	if err := Print(&b, s, true); err != nil {
		t.Fatal(err)
	}
	b.WriteString(EventLine(s.Events[0], nil))
	if strings.ContainsAny(b.String(), "\x1b\r\u202e") || strings.Contains(b.String(), "\ny") {
		t.Errorf("%q", b.String())
	}
}

// The status of a running node says how others join; that of a node that is gone does not.
func TestStatusSaysHowToJoin(t *testing.T) {
	s := trainingStatus()
	s.Link += "#secret"
	for _, running := range []bool{true, false} {
		var b strings.Builder
		if err := Print(&b, s, running); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "join     atoll join 'atoll:abab,/ip4/192.0.2.1/tcp/4001/p2p/12D3KooW#secret'\n"); got != running {
			t.Errorf("running %v: %s", running, b.String())
		}
	}
}

func TestLimitsText(t *testing.T) {
	ends := time.Date(2026, 12, 1, 0, 0, 0, 0, time.Local)
	for _, c := range []struct {
		limits status.Limits
		want   string
	}{
		{status.Limits{}, ""},
		{status.Limits{Asked: true, Why: []string{"x"}, Resting: true}, ""},
		{status.Limits{UpPerS: 625_000, DownPerS: 2.5e6, Hours: "mon-fri 22-07", OnBattery: "pause"}, "up 5 Mbit/s; down 20 Mbit/s; works mon-fri 22-07; pauses on battery"},
		{status.Limits{Quota: &status.Quota{Bytes: 300e9, Period: "month", Used: 123_400_000, Left: 300e9 - 123_400_000, Ends: ends}}, "123 MB of 300 GB this month used, 300 GB left until 2026-12-01"},
		{status.Limits{Quota: &status.Quota{Bytes: 2e9, Period: "day", Used: 3e9, Ends: ends}}, "3 GB of 2 GB this day used, 0 B left until 2026-12-01"},
	} {
		if got := limitsText(c.limits); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestPeersText(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{peersText(0, 0), "alone"},
		{peersText(1, 0), "1 peer"},
		{peersText(7, 2), "7 peers, 2 paused"},
		{peersText(0, 1), "alone, 1 paused"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// A warning is a sentence among others, and events are told in their order, also where one waits for a name.
func TestWhatJoinSaysBetween(t *testing.T) {
	var b bytes.Buffer
	out := &cli.Console{Out: &b, Err: &b}
	log := slog.New(LogHandler(out, slog.LevelWarn)).With("run", "ab")
	log.Info("nobody reads this")
	log.Warn("the disk is slow", "for", "3s\x1b[H")
	if text := b.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, " the disk is slow (run ab, for 3s") || strings.ContainsAny(text, "=\x1b") {
		t.Errorf("%q", text)
	}
	b.Reset()
	p, s := NewProgress(out, nil, false, "dir"), trainingStatus()
	other := strings.Repeat("ef", 32)
	s.Events = []status.Event{{At: s.At, Kind: "connected", Peer: other}, {At: s.At.Add(time.Millisecond), Kind: "silent", Peer: other}}
	if p.printEvents(s, false); b.Len() != 0 {
		t.Errorf("before its name is known: %q", b.String())
	}
	s.Peers[1].Label = "lab"
	p.printEvents(s, false)
	if first, second := strings.Index(b.String(), "connected lab"), strings.Index(b.String(), "silent lab"); first < 0 || second < first {
		t.Errorf("%q", b.String())
	}
}

// A node that stays after the run's end says what there is to do next, once, and does not call itself alone.
func TestWhatIsNextIsSaidOnce(t *testing.T) {
	var b bytes.Buffer
	p, s := NewProgress(&cli.Console{Out: &b, Err: &b}, nil, false, "dir"), trainingStatus()
	s.Finished, s.Peers, s.Events = true, s.Peers[:1], nil
	if p.print(s, false); strings.Contains(b.String(), "next:") {
		t.Errorf("it may end at once: %q", b.String())
	}
	p.over = p.over.Add(-staysAfter)
	p.print(s, false)
	p.print(s, true)
	p.end(s)
	if text := b.String(); strings.Count(text, "next:") != 1 || strings.Contains(text, "alone") || !strings.Contains(text, "atoll generate dir") {
		t.Errorf("%q", text)
	}
	b.Reset()
	s.Brought = true // these two commands know built-in models only
	NewProgress(&cli.Console{Out: &b, Err: &b}, nil, false, "dir").end(s)
	if text := b.String(); !strings.Contains(text, "atoll export dir") || strings.Contains(text, "atoll generate") || strings.Contains(text, "atoll eval") {
		t.Errorf("%q", text)
	}
}

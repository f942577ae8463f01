package inspect

import (
	"crypto/ed25519"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/inspect/ledgertest"
	"atoll/node/store"
)

// finding is what the doctor said of something.
func (c Checkup) finding(t *testing.T, name string) Finding {
	t.Helper()
	for _, f := range c.Findings {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("nothing about %s in %+v", name, c.Findings)
	return Finding{}
}

// checkFindings wants things to be wrong, each with a text and a remedy, and all
// else to be well.
func checkFindings(t *testing.T, c Checkup, wrong map[string][2]string) {
	t.Helper()
	for _, f := range c.Findings {
		want, isWrong := wrong[f.Name]
		if f.OK == isWrong || !strings.Contains(f.Text, want[0]) || !strings.Contains(f.Remedy, want[1]) {
			t.Errorf("%+v, want wrong %v with %q", f, isWrong, want)
		}
	}
	if c.OK != (len(wrong) == 0) {
		t.Errorf("all is well: %v", c.OK)
	}
}

func checkup(t *testing.T, dir string) Checkup {
	t.Helper()
	c, err := Doctor(t.Context(), dir, false, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// folderWithKey is a folder as a node leaves it.
func folderWithKey(t *testing.T, rounds int) *ledgertest.Writer {
	t.Helper()
	l := ledgertest.NewOf(t, ledgertest.Genesis(1<<24)).Rounds(rounds).Bases()
	_, _, err := store.LoadKey(l.Dir)
	l.Check(err)
	return l
}

func TestDoctorOfAFolder(t *testing.T) {
	l := folderWithKey(t, 4)
	dir := l.Close()
	c := checkup(t, dir)
	checkFindings(t, c, nil)
	if f := c.finding(t, "ledger"); !strings.Contains(f.Text, "16 payloads") || !strings.Contains(f.Text, "2 kept states") {
		t.Errorf("%+v", f)
	}
	if c.Running || !strings.Contains(c.finding(t, "speed").Text, "tokens/s") {
		t.Errorf("%+v", c)
	}
	if _, err := Doctor(t.Context(), t.TempDir(), false, ""); !errors.Is(err, ErrNoNodeFolder) {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestDoctorFindsDamage(t *testing.T) {
	l := folderWithKey(t, 4)
	l.Flip(l.FirstDelta(0, 3))
	l.DamageBase("1-4-")
	dir := l.Close()
	for name, content := range map[string]string{
		"steps.log":        strings.Repeat("x", 64),
		store.ContactsFile: `{"Listen":["/ip4/127.0.0.1/tcp/` + taken(t) + `","/ip4/127.0.0.1/udp/1/quic-v1"]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	checkFindings(t, checkup(t, dir), map[string][2]string{
		"key":       {"there is no key", "atoll key --import"},
		"ledger":    {"2 files are damaged", "start the node"},
		"step log":  {"2 of 2 records", "only the count"},
		"addresses": {"another program listens", "--listen"},
	})
}

// taken is a port that a program listens on.
func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// The program that trains is started, and what it lacks is said: that which the node had, or another that is asked about.
func TestDoctorTriesTheLearner(t *testing.T) {
	dir := folderWithKey(t, 1).Close()
	if err := os.WriteFile(filepath.Join(dir, store.LearnerFile), []byte("no-such-program --fast"), 0o600); err != nil {
		t.Fatal(err)
	}
	checkFindings(t, checkup(t, dir), map[string][2]string{"learner": {"no-such-program --fast: ", "last words"}})
	for command, want := range map[string]string{
		"echo no module named torch >&2; exit 2": "no module named torch", "torchrun:99": "1 to 64", "attach": "", "builtin": "",
	} {
		c, err := Doctor(t.Context(), dir, false, command)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			checkFindings(t, c, nil)
			continue
		}
		checkFindings(t, c, map[string][2]string{"learner": {want, ""}})
		if alone := DoctorOfLearner(t.Context(), command); alone.OK || len(alone.Findings) != 1 || !strings.Contains(alone.Findings[0].Text, want) || alone.Findings[0].Remedy == "" {
			t.Errorf("%s: %+v", command, alone)
		}
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here")
	}
	if c := DoctorOfLearner(t.Context(), "idle"); !c.OK || !strings.Contains(c.Findings[0].Text, "atoll.idle 0.1.0, arithmetic in f32, 1 x cpu idle") {
		t.Errorf("%+v", c)
	}
}

func TestDoctorFixesTheIndex(t *testing.T) {
	dir := folderWithKey(t, 2).Close()
	if err := os.Truncate(filepath.Join(dir, "index.db"), 4096); err != nil {
		t.Fatal(err)
	}
	checkFindings(t, checkup(t, dir), map[string][2]string{"index": {"damaged", "--fix"}})
	c, err := Doctor(t.Context(), dir, true, "")
	if f := c.finding(t, "index"); err != nil || !f.OK || !strings.Contains(f.Text, "set aside in "+dir) {
		t.Errorf("%+v, %v", f, err)
	}
	checkFindings(t, checkup(t, dir), nil)
	if _, err := os.Stat(filepath.Join(dir, "key")); err != nil {
		t.Error(err)
	}
}

// Segments that are damaged are told of, and set aside on demand; the ledger is read without them.
func TestDoctorFixesSegments(t *testing.T) {
	const rounds, more = 128, 300 // of a segment; so many that a restart reads none of it
	l := folderWithKey(t, 1)
	for p := range l.Plan {
		for round := l.Tips[p].Round + 1; round <= rounds+more; round++ {
			l.Check(l.Store.PutRound(p, round, store.Round{}))
		}
	}
	made, err := l.Store.Seal([]uint32{rounds, rounds}, func(round []wire.Header) []uint64 { return make([]uint64, len(round)) })
	if l.Check(err); made != 2 {
		t.Fatalf("%d segments", made)
	}
	dir := l.Close()
	if f := checkup(t, dir).finding(t, "segments"); !f.OK || !strings.Contains(f.Text, "2 files") {
		t.Errorf("%+v", f)
	}
	files, err := filepath.Glob(filepath.Join(dir, "segments", "*", "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("segments %v, %v", files, err)
	}
	l.Check(os.Truncate(files[1], 99))
	checkFindings(t, checkup(t, dir), map[string][2]string{"segments": {"1 of 2 files", "--fix"}})
	c, err := Doctor(t.Context(), dir, true, "")
	if f := c.finding(t, "segments"); err != nil || !f.OK || !strings.Contains(f.Text, "set aside in "+dir) {
		t.Errorf("%+v, %v", f, err)
	}
	view, err := Ledger(dir)
	l.Check(err)
	if a, b := view.Fragments[0], view.Fragments[1]; a.Missing != 0 || b.Missing != rounds || b.Closed != rounds+more {
		t.Errorf("after the fix: %+v and %+v", a, b)
	}
}

// What a segment had that was set aside, verify names; what came after it is replayed from a kept state.
func TestVerifyNamesWhatWasSetAside(t *testing.T) {
	const rounds, more = 128, 8
	l := folderWithKey(t, rounds+more)
	made, err := l.Store.Seal([]uint32{rounds, rounds}, func(round []wire.Header) []uint64 { return make([]uint64, len(round)) })
	if l.Check(err); made != 2 {
		t.Fatalf("%d segments", made)
	}
	dir := l.Close()
	r, err := Verify(t.Context(), dir)
	if err != nil || !r.FromGenesis || len(r.Missing) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "segments", "*", "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("segments %v, %v", files, err)
	}
	l.Check(os.Truncate(files[1], 99))
	if _, err := Verify(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "fragment 1 rounds 1 to 128") || !strings.Contains(err.Error(), "--fix") {
		t.Errorf("with a damaged segment: %v", err)
	}
	_, err = Doctor(t.Context(), dir, true, "")
	l.Check(err)
	r, err = Verify(t.Context(), dir)
	if want := []Missing{{1, 1, rounds}}; err != nil || !slices.Equal(r.Missing, want) || r.From[0] != 0 || r.From[1] <= rounds {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDoctorOfADamagedGenesis(t *testing.T) {
	dir := folderWithKey(t, 1).Close()
	if err := os.WriteFile(filepath.Join(dir, "genesis"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	checkFindings(t, checkup(t, dir), map[string][2]string{"genesis": {"genesis", "join link"}})
}

// Whatever is wrong, something can be done about it.
func TestDoctorHasRemedies(t *testing.T) {
	dir := folderWithKey(t, 1).Close()
	if err := os.WriteFile(filepath.Join(dir, "genesis"), ledgertest.Genesis(99).Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	checkFindings(t, checkup(t, dir), map[string][2]string{"ledger": {"its index belongs to run", "keep the key"}})
	d := &doctor{}
	d.judgeMemory(1<<30, 1<<20)
	d.judgeMemory(1<<20, 1<<30)
	d.judgeMemory(0, 1<<30) // a system that does not say
	if f := d.Findings; !f[0].OK || f[1].OK || !f[2].OK || !strings.Contains(f[2].Text, "may take an unknown amount here") || !strings.Contains(f[1].Remedy, "--batch") || strings.Contains(f[1].Text, "--batch") {
		t.Errorf("%+v", f)
	}
	sick := &doctor{Checkup: Checkup{Dir: dir}, dir: dir, ctx: t.Context()}
	if r := sick.ledgerRemedy(syscall.EIO); !strings.Contains(r, "another disk") {
		t.Errorf("remedy %q", r)
	}
	sick.checkSpeed() // of a genesis without a model
	if f := sick.Findings; len(f) != 1 || f[0].OK || f[0].Remedy == "" {
		t.Errorf("%+v", f)
	}
}

func TestDoctorOfTheClockAndTheDisk(t *testing.T) {
	g := ledgertest.Genesis(1 << 62)
	g.Outer.CreatedMs = time.Now().Add(time.Hour).UnixMilli()
	l := ledgertest.NewOf(t, g)
	_, _, err := store.LoadKey(l.Dir)
	l.Check(err)
	checkFindings(t, checkup(t, l.Close()), map[string][2]string{
		"clock": {"in the future", "NTP"},
		"space": {"the rest of the run adds", "--keep"},
	})
}

// A folder says that an owner revoked its node, and what to do, as soon as it knows that.
func TestDoctorTellsOfARevocation(t *testing.T) {
	dir, run, owner := t.TempDir(), wire.RunID{1}, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	key, _, err := store.LoadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := &doctor{dir: dir, Checkup: Checkup{OK: true}}
	f := &folder{members: member.NewTable(run, []wire.PeerID{wire.PeerIDOf(owner)})}
	c, err := member.Issue(owner, run, member.Invite{}, owner).Admit(run, key)
	if err == nil {
		_, err = f.members.Add(c)
	}
	if d.checkRevoked(f); err != nil || len(d.Findings) > 0 {
		t.Fatalf("%+v, %v", d.Findings, err)
	}
	h := wire.NewRevocation(0, 7, wire.Digest(c.Invite.Key), []byte("it leaked"))
	if _, err := f.members.AddWords(member.Word{Statement: wire.SignHeader(owner, run, h), Reason: "it leaked"}); err != nil {
		t.Fatal(err)
	}
	d.checkRevoked(f)
	checkFindings(t, d.Checkup, map[string][2]string{"revoked": {"from round 7 on: it leaked", "ask the run's owner"}})
	if len(d.Findings) != 1 {
		t.Error("nothing is found")
	}
}

// The remedy for a full disk is one that join takes.
func TestSpaceRemedyCanBeTyped(t *testing.T) {
	for free, want := range map[int64]string{0: "--keep 1MB,", 3_999_999: "--keep 1MB,", 4_000_000: "--keep 2MB,", 2_000_000: "--keep 1MB,", 10e9: "--keep 5000MB,"} {
		if got := spaceRemedy(free); !strings.Contains(got, want) {
			t.Errorf("%d bytes: %q, want %q", free, got, want)
		}
	}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/joinlink"
	"atoll/node/status"
)

// nano is a model of some thousand parameters.
const nano = `{"vocab":256,"hidden":16,"layers":1,"heads":2,"kvheads":1,"intermediate":32,"context":16}`

// newRun writes the genesis of a run that does not end within a test.
func newRun(t *testing.T, text string, args ...string) (path string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, genesisName)
	model := filepath.Join(dir, "nano.json")
	if err := os.WriteFile(model, []byte(nano), 0o600); err != nil {
		t.Fatal(err)
	}
	line := append([]string{"new", "--model", model, "--tokens", "1e12", "--data", text, "--fragments", "3", "--h", "4", "--profile", "local", dir}, args...)
	if code, _, stderr := typed(t, line...); code != 0 {
		t.Fatalf("new: exit code %d: %s", code, stderr)
	}
	return path
}

// joined is a node that a test started.
type joined struct {
	link   string
	cancel context.CancelFunc // Ctrl-C
	abort  chan struct{}      // closed: another
	ended  chan int
	stderr *lockedBuffer
}

// lockedBuffer is written and read by different goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startNode runs `atoll join` and waits for its first line on stdout.
func startNode(t *testing.T, args ...string) *joined {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	j := &joined{cancel: cancel, abort: make(chan struct{}), ended: make(chan int, 1), stderr: &lockedBuffer{}}
	stdout, w := io.Pipe()
	line := append([]string{"join", "--profile", "local", "--threads", "1", "--batch", "1", "--pace", "5ms"}, args...)
	go func() {
		code := run(ctx, line, &cli.Console{In: strings.NewReader(""), Out: w, Err: j.stderr, Abort: j.abort})
		w.Close()
		j.ended <- code
	}()
	r := bufio.NewReader(stdout)
	first, err := r.ReadString('\n')
	if err != nil {
		cancel()
		t.Fatalf("join %v: exit code %d: %s", args, <-j.ended, j.stderr)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	j.link = strings.TrimSpace(first)
	return j
}

// longestWait is how long a test waits for what has to come. On an idle machine it takes a second.
const longestWait = 3 * time.Minute

// code is the exit code of the node once it has ended.
func (j *joined) code(t *testing.T) int {
	t.Helper()
	select {
	case code := <-j.ended:
		return code
	case <-time.After(longestWait):
		t.Fatalf("the node has not ended: %s", j.stderr)
		return 0
	}
}

// await returns once something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > longestWait {
			t.Fatalf("%s: not within %v", what, longestWait)
		}
	}
}

// meet waits until a node knows that another is there.
func meet(t *testing.T, dir string) {
	t.Helper()
	await(t, "the other node is seen in "+dir, func() bool { return status.LivePeers(ask(t, dir).Peers) > 0 })
}

// leave is Ctrl-C.
func (j *joined) leave(t *testing.T) {
	t.Helper()
	j.cancel()
	if code := j.code(t); code != 0 {
		t.Errorf("exit code %d after an ordered leave: %s", code, j.stderr)
	}
}

const anyPort = "/ip4/127.0.0.1/tcp/0"

func TestSecondNodeJoins(t *testing.T) {
	text := someText(t)
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	first := startNode(t, "--genesis", newRun(t, text), a, "--listen", anyPort, "--data", text)
	second := startNode(t, first.link, b, "--listen", anyPort, "--data", text, "--json")
	var s status.Snapshot
	if err := json.Unmarshal([]byte(second.link), &s); err != nil || s.Run == "" {
		t.Errorf("first line of --json: %q: %v", second.link, err)
	}

	meet(t, a)
	if code, stdout, _ := typed(t, "peers", a, "--json"); code != 0 || strings.Count(stdout, `"id"`) != 2 {
		t.Errorf("peers: exit code %d: %s", code, stdout)
	}
	if p := ask(t, a).Peers; p[0].SentBytes != 0 || p[1].SentBytes == 0 || p[1].ReceivedBytes == 0 {
		t.Errorf("bytes of the node itself and of its peer: %+v", p)
	}
	for _, command := range []string{"ledger", "verify", "report"} {
		if code, stdout, stderr := typed(t, command, a); code != exitDone {
			t.Errorf("%s of a running node: exit code %d: %s%s", command, code, stdout, stderr)
		}
	}
	if code, stdout, stderr := typed(t, "generate", a, "--length", "8", "--json"); code != 0 || !strings.Contains(stdout, `"tokens":8`) {
		t.Errorf("generate: exit code %d: %s%s", code, stdout, stderr)
	}

	if code, stdout, stderr := typed(t, "leave", b); code != 0 || stdout != "left\n" {
		t.Errorf("leave: exit code %d: %s%s", code, stdout, stderr)
	}
	if code := second.code(t); code != 0 {
		t.Errorf("the node that was asked to leave: exit code %d: %s", code, second.stderr)
	}
	first.leave(t)
	for _, dir := range []string{a, b} {
		if code, stdout, stderr := typed(t, "verify", dir); code != 0 || !strings.HasPrefix(stdout, "ok: ") {
			t.Errorf("verify %s: exit code %d: %s%s", dir, code, stdout, stderr)
		}
	}
}

// ask is `atoll status --json`.
func ask(t *testing.T, dir string) (s status.Snapshot) {
	t.Helper()
	code, stdout, stderr := typed(t, "status", dir, "--json")
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || code != 0 {
		t.Fatalf("status: exit code %d: %s%s", code, stdout, stderr)
	}
	return s
}

func TestJoinErrors(t *testing.T) {
	text := someText(t)
	genesis, dir := newRun(t, text), t.TempDir()
	first := startNode(t, "--genesis", genesis, filepath.Join(dir, "a"), "--listen", anyPort, "--data", text)
	defer first.leave(t)
	link, err := joinlink.Parse(first.link)
	if err != nil {
		t.Fatal(err)
	}
	port := regexp.MustCompile(`/ip4/127\.0\.0\.1/tcp/\d+`).FindString(link.Peers[0])
	changed := func(change func(l *joinlink.Link)) string {
		l := link
		change(&l)
		return l.String()
	}
	otherRun := wire.RunID(bytes.Repeat([]byte{1}, 32))
	damaged := filepath.Join(dir, "damaged.genesis")
	write(t, damaged, strings.Replace(read(t, genesis), `"Rules":1`, `"Rules":9`, 1))
	spaced := filepath.Join(dir, "spaced.genesis")
	write(t, spaced, read(t, genesis)+"\n")
	short := filepath.Join(dir, "short.txt")
	write(t, short, "too short")
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"port in use", []string{"--genesis", genesis, "--listen", port}, exitFailed, "port in use"},
		{"listen on nonsense", []string{"--genesis", genesis, "--listen", "localhost:4001"}, exitUsage, "want something like /ip4/"},
		{"another run", []string{changed(func(l *joinlink.Link) { l.Run, l.Invite = otherRun, nil })}, exitRefused, "run: we have 0101010101, peer has"},
		{"no invite", []string{changed(func(l *joinlink.Link) { l.Invite = nil })}, exitRefused, "ask the run's owner for a new link"},
		{"genesis of another version", []string{"--genesis", damaged}, exitFailed, "Rules is 9, this program knows 1"},
		{"genesis edited", []string{"--genesis", spaced}, exitFailed, "copy the file unchanged"},
		{"another text", []string{"--genesis", genesis, "--data", short}, exitFailed, `: ` + short + ` is "short.txt"`},
		{"no data", []string{"--genesis", genesis, "--data", filepath.Join(dir, "absent")}, exitFailed, "absent"},
		{"folder in use", []string{first.link, filepath.Join(dir, "a")}, exitFailed, "in use"},
		{"batch", []string{"--genesis", genesis, "--batch", "-4"}, exitUsage, "--batch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := append([]string{"join", "--profile", "local", "--threads", "1", "--listen", anyPort, "--data", text}, c.args...)
			if c.name != "folder in use" {
				line = append(line, t.TempDir())
			}
			code, _, stderr := typed(t, line...)
			if code != c.code || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit code %d, stderr %q; want %d, %q", code, stderr, c.code, c.stderr)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The first interrupt ends the context, the second closes abort, unless it comes
// with the first, and the third ends the process.
func TestInterrupts(t *testing.T) {
	died := make(chan struct{})
	ctx, abort, stop := interrupts(func() { close(died) })
	defer stop()
	interruptSelf(t)
	wait(t, ctx.Done(), "the first interrupt")
	interruptSelf(t)
	time.Sleep(sameRequest + 100*time.Millisecond)
	select {
	case <-abort:
		t.Error("an interrupt right after the first counts as the second")
	default:
	}
	interruptSelf(t)
	wait(t, abort, "the second interrupt")
	interruptSelf(t)
	wait(t, died, "the third interrupt")
}

// Whoever has an invite can join, so what is said of a bad link leaves all but a little of one to guess.
func TestBadLinksHideInvites(t *testing.T) {
	const known = 12 // characters of base64, of 22 that a secret has
	pass, err := member.New(ed25519.NewKeyFromSeed(make([]byte, 32)), wire.RunID{1}, member.Invite{})
	if err != nil {
		t.Fatal(err)
	}
	text := joinlink.Link{Run: wire.RunID{1}, Peers: []string{"/ip4/192.0.2.1/tcp/4001/p2p/12D3KooWGzXPg3pLGLXzRAVHBrWF7qP2jiUqCTPkJY4vhzcZzLxB"}, Invite: &pass}.String()
	at := len(text) - 4 - 86 - 3 - 22 // checksum, signature, limits
	secret := text[at : at+22]
	for _, link := range []string{"http://" + text, "atol:" + text[6:], text[:len(text)-1], text[1:], text[76:], text[at:], text[at+3:], "x" + text, text[:at+20]} {
		for _, command := range []string{"join", "relay", "doctor"} {
			args := []string{command, link, filepath.Join(t.TempDir(), "x")}
			code, stdout, stderr := typed(t, args...)
			if code != exitUsage {
				t.Errorf("%v: exit code %d: %s", args, code, stderr)
			}
			for i := range len(secret) - known {
				if strings.Contains(stdout+stderr, secret[i:i+known+1]) {
					t.Fatalf("%v shows %s of the invite: %s%s", args, secret[i:i+known+1], stdout, stderr)
				}
			}
		}
	}
}

// A process that nobody reads any more goes on after outliveReaders, and dies without.
func TestOutlivesReaders(t *testing.T) {
	if how := os.Getenv("ATOLL_TEST_READERS"); how != "" {
		if how == "outlive" {
			outliveReaders()
		}
		fmt.Println("nobody reads this")
		os.Exit(exitDone)
	}
	for how, outlives := range map[string]bool{"outlive": true, "die": false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		c := exec.Command(os.Args[0], "-test.run=^TestOutlivesReaders$")
		c.Env, c.Stdout = append(os.Environ(), "ATOLL_TEST_READERS="+how), w
		if err := c.Run(); (err == nil) != outlives {
			t.Errorf("%s: %v", how, err)
		}
		w.Close()
	}
}

func interruptSelf(t *testing.T) {
	t.Helper()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s has no effect", what)
	}
}

// The second interrupt ends the command while the node still runs.
func TestSecondInterruptEndsJoin(t *testing.T) {
	text := someText(t)
	// Not t.TempDir, which fails where a file is still being written: nobody waits for
	// what the node does after the last file that is looked for below.
	root, err := os.MkdirTemp("", "interrupted")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	dir := filepath.Join(root, "a")
	j := startNode(t, "--genesis", newRun(t, text), dir, "--listen", anyPort, "--data", text)
	close(j.abort)
	if code := j.code(t); code != exitFailed || !strings.Contains(j.stderr.String(), "interrupted twice") {
		t.Errorf("exit code %d: %s", code, j.stderr)
	}
	j.cancel() // in a process of its own the node would be gone by now
	for range 200 {
		if _, err := os.Stat(filepath.Join(dir, status.FinalFile)); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("the node did not end")
}

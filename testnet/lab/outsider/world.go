package outsider

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/joinlink"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/testnet/lab/program"
)

// What nodes are told beside what was typed.
const (
	stepsOfDelta = "8"    // short rounds: what is folded shows within a second or two
	batch        = "2"    // rows of a step, so that one takes a small part of the pace
	budget       = "1e10" // no run ends by itself
	seed         = "7"
)

// Times of a run.
const (
	startWithin = 60 * time.Second
	foldWithin  = 60 * time.Second
	endWithin   = 15 * time.Second
	lookEvery   = 200 * time.Millisecond
)

// world is a run of real nodes on this machine.
type world struct {
	settings
	dir      string
	genesis  genesis.Genesis
	owner    ed25519.PrivateKey
	used     member.Pass // for one node, which is there
	link     joinlink.Link
	nodes    []*node
	addrs    []string
	listener *listener
}

// node is a process.
type node struct {
	dir    string
	cmd    *exec.Cmd
	ended  chan struct{}
	client *status.Client
	log    *os.File
}

// start begins a run, and returns when all nodes have folded something.
func (s settings) start(ctx context.Context, dir string) (w *world, err error) {
	w = &world{settings: s, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.end())
		}
	}()
	if err := w.describe(ctx); err != nil {
		return w, err
	}
	first, err := w.join(0, "--genesis", w.path("run/genesis"))
	if err != nil {
		return w, err
	}
	text, err := first.firstLine(ctx)
	if err != nil {
		return w, err
	}
	if w.link, err = joinlink.Parse(text); err != nil {
		return w, err
	}
	once := joinlink.Link{Run: w.link.Run, Peers: w.link.Peers}
	once.Invite = &w.used
	for i := 1; i < s.nodes; i++ {
		by := text
		if i == 1 {
			by = once.String() // uses it up
		}
		n, err := w.join(i, by)
		if err != nil {
			return w, err
		}
		if _, err := n.firstLine(ctx); err != nil {
			return w, err
		}
	}
	if err := w.await(ctx); err != nil {
		return w, err
	}
	w.listener, err = listen(ctx, w.knowledge(), *w.link.Invite, w.addrs)
	return w, err
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// describe makes the genesis.
func (w *world) describe(ctx context.Context) error {
	dir := w.path("run")
	_, err := program.Output(ctx, w.log, nil, w.atoll, "new", "--name", "run", "--model", "tiny", "--profile", "local", "--h", stepsOfDelta,
		"--batch", batch, "--tokens", budget, "--learners", strconv.Itoa(w.settings.nodes), "--seed", seed, dir)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(dir, "genesis"))
	if err == nil {
		w.genesis, err = genesis.Decode(b)
	}
	if err == nil {
		w.owner, err = store.ReadKeyFile(filepath.Join(dir, "owner"))
	}
	if err == nil {
		w.used = member.Issue(w.owner, w.genesis.RunID(), member.Invite{Uses: 1}, keyOf("used invite", 0))
	}
	return err
}

// join starts a node.
func (w *world) join(i int, args ...string) (*node, error) {
	n := &node{dir: w.path(fmt.Sprint("node", i)), ended: make(chan struct{})}
	var err error
	if n.log, err = os.Create(w.path(fmt.Sprintf("node%d.log", i))); err != nil {
		return nil, err
	}
	n.cmd = exec.Command(w.atoll, append([]string{"join", n.dir, "--profile", "local", "--threads", "1", "--batch", batch,
		"--pace", w.pace.String(), "--precision", "f32", "--eval-bytes", "0"}, args...)...)
	n.cmd.Stderr = n.log
	return n, w.begin(n)
}

// begin starts the process of a node, whose first line on stdout is its link.
func (w *world) begin(n *node) error {
	out, err := os.Create(n.linkFile())
	if err != nil {
		return err
	}
	n.cmd.Stdout = out
	err = errors.Join(n.cmd.Start(), out.Close())
	if err != nil {
		return errors.Join(fmt.Errorf("start a node: %w", err), n.log.Close())
	}
	go func() {
		_ = n.cmd.Wait() // how it ended stands in its log
		close(n.ended)
	}()
	w.nodes = append(w.nodes, n)
	return nil
}

func (n *node) linkFile() string { return n.dir + ".link" }

// firstLine waits for the line that a node prints when it can be reached.
func (n *node) firstLine(ctx context.Context) (line string, err error) {
	err = n.until(ctx, startWithin, "it prints its link", func() bool {
		b, err := os.ReadFile(n.linkFile())
		whole := err == nil && bytes.IndexByte(b, '\n') >= 0
		if whole {
			line = strings.TrimSpace(string(b[:bytes.IndexByte(b, '\n')]))
		}
		return whole
	})
	return line, err
}

// until looks at something again and again until it is there, or the node has ended.
func (n *node) until(ctx context.Context, within time.Duration, what string, there func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for !there() {
		select {
		case <-n.ended:
			return fmt.Errorf("a node ended before %s: %s", what, n.lastLine())
		case <-ctx.Done():
			return fmt.Errorf("%v until %s: %w: %s", within, what, ctx.Err(), n.lastLine())
		case <-time.After(lookEvery):
		}
	}
	return nil
}

// lastLine is the end of what a node logged.
func (n *node) lastLine() string {
	b, err := os.ReadFile(n.log.Name())
	if err != nil {
		return err.Error()
	}
	return string(program.LastLine(b))
}

// await waits until each node has folded something, and notes where they are.
func (w *world) await(ctx context.Context) error {
	for _, n := range w.nodes {
		var s status.Snapshot
		if err := n.until(ctx, foldWithin, "it folds", func() bool {
			var err error
			s, err = n.snapshot(ctx)
			return err == nil && s.TokensFolded > 0 && len(s.Peers) >= len(w.nodes)
		}); err != nil {
			return err
		}
		link, err := joinlink.Parse(s.Link)
		if err != nil || len(link.Peers) == 0 {
			return fmt.Errorf("the link of a node: %v", err)
		}
		w.addrs = append(w.addrs, link.Peers[0])
	}
	return nil
}

func (n *node) snapshot(ctx context.Context) (status.Snapshot, error) {
	if n.client == nil {
		c, err := status.Dial(n.dir)
		if err != nil {
			return status.Snapshot{}, err
		}
		n.client = c
	}
	return n.client.Snapshot(ctx)
}

// knowledge is what an outsider may know of the run.
func (w *world) knowledge() knowledge {
	run := w.genesis.RunID()
	secret := keyOf("invite", 1)
	return knowledge{
		run: run, fragments: w.genesis.Outer.Fragments, codec: uint8(w.genesis.Outer.Codec), startedMs: w.genesis.Outer.CreatedMs,
		expired: member.Issue(w.owner, run, member.Invite{ExpiresMs: w.genesis.Outer.CreatedMs + 1}, secret),
		used:    w.used,
		taken:   member.Issue(w.owner, run, member.Invite{Key: wire.PeerIDOf(keyOf("taken", 0))}, nil),
	}
}

// end ends all processes: nobody asks what becomes of the run.
func (w *world) end() (err error) {
	if w.listener != nil {
		err = w.listener.close()
	}
	for _, n := range w.nodes {
		err = errors.Join(err, n.end())
	}
	return err
}

func (n *node) end() error {
	if err := n.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-n.ended:
	case <-time.After(endWithin):
		return fmt.Errorf("a node does not end within %v", endWithin)
	}
	return n.log.Close()
}

// ticksPerSecond is in what Linux counts the time that processes took.
const ticksPerSecond = 100

// cpuOf is the time that processors spent for a process, by /proc/PID/stat.
func cpuOf(pid string) (time.Duration, error) {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return 0, err
	}
	return readCPU(b)
}

// readCPU reads the line. PID (NAME) STATE ...; a name may have brackets of its own.
func readCPU(line []byte) (time.Duration, error) {
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/PID/stat is %q", line)
	}
	var ticks int64
	for _, f := range fields[user : system+1] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/stat is %q: %w", line, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

// lines counts those of a file.
func lines(path string) (n int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		b, err := r.ReadSlice('\n')
		if len(b) > 0 && err == nil {
			n++
		}
		if err == io.EOF {
			return n, nil
		} else if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return n, err
		}
	}
}

package natlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"atoll/node/status"
)

// Node is a process of the atoll program on a machine of a Lab.
type Node struct {
	Name  string // of the machine
	Dir   string
	lab   *Lab
	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{} // closed when the process is gone
	err   error         // what it ended with, once it is
}

// Run describes the run of the laboratory's nodes, which is open: who meets whom is what worlds are about. Flags are those
// of atoll new.
func (l *Lab) Run(flags ...string) error {
	answer, err := command(l.binary, append([]string{"new", "--json", "--admission", "open", l.path("")}, flags...)...)
	if err != nil {
		return err
	}
	var made struct{ Run string }
	if err := json.Unmarshal([]byte(answer), &made); err != nil {
		return fmt.Errorf("natlab: the answer of atoll new: %w", err)
	}
	l.run = made.Run
	return nil
}

// Relay starts a relay for the run on a machine, and returns the link that it prints.
func (l *Lab) Relay(ctx context.Context, machine string, flags ...string) (n *Node, link string, err error) {
	n, err = l.Start(machine, append([]string{"relay", "atoll:" + l.run, l.path(machine)}, flags...)...)
	if err != nil {
		return nil, "", err
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		for line := range strings.Lines(n.Log()) {
			if strings.HasPrefix(line, "atoll:") && strings.HasSuffix(line, "\n") {
				return n, strings.TrimSpace(line), nil
			}
		}
		select {
		case <-tick.C:
		case <-n.ended:
			return nil, "", fmt.Errorf("natlab: the relay on %s ended (%v):\n%s", machine, n.err, tail(n.Log()))
		case <-ctx.Done():
			return nil, "", fmt.Errorf("natlab: the relay on %s prints no link:\n%s", machine, tail(n.Log()))
		}
	}
}

// Finding is a line of atoll doctor.
type Finding struct {
	Name         string
	OK           bool
	Text, Remedy string
}

// Doctor tries a link from a machine, and returns what it finds by name.
func (l *Lab) Doctor(ctx context.Context, machine, link string, flags ...string) (map[string]Finding, error) {
	args := append([]string{"netns", "exec", l.places[machine].space, l.binary, "doctor", link, "--json"}, flags...)
	cmd := exec.CommandContext(ctx, "ip", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var found struct{ Findings []Finding }
	if bad := json.Unmarshal(out, &found); bad != nil {
		return nil, fmt.Errorf("natlab: doctor on %s: %w: %s%s", machine, errors.Join(err, bad), out, stderr.String())
	}
	byName := map[string]Finding{}
	for _, f := range found.Findings {
		byName[f.Name] = f
	}
	return byName, nil
}

// Memory is what the process takes of the machine's, in bytes.
func (n *Node) Memory() (int, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	var all, resident int
	if _, err := fmt.Sscan(string(b), &all, &resident); err != nil {
		return 0, err
	}
	return resident * os.Getpagesize(), nil
}

// First starts the first node of the run, on a machine; flags are those of atoll join.
func (l *Lab) First(machine string, flags ...string) (*Node, error) {
	return l.Start(machine, append([]string{"join", "--genesis", l.path("genesis"), l.path(machine)}, flags...)...)
}

// Join starts a node that joins by a link.
func (l *Lab) Join(machine, link string, flags ...string) (*Node, error) {
	return l.Start(machine, append([]string{"join", link, l.path(machine)}, flags...)...)
}

// Start runs the program on a machine. What it writes is in the file log of its folder.
func (l *Lab) Start(machine string, args ...string) (*Node, error) {
	p := l.places[machine]
	if p == nil {
		return nil, fmt.Errorf("natlab: there is no machine %q", machine)
	}
	n := &Node{Name: machine, Dir: l.path(machine), lab: l, ended: make(chan struct{})}
	if err := os.MkdirAll(n.Dir, 0o755); err != nil {
		return nil, err
	}
	var err error
	if n.log, err = os.OpenFile(n.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return nil, err
	}
	n.cmd = exec.Command("ip", append([]string{"netns", "exec", p.space, l.binary}, args...)...)
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("natlab: start on %s: %w", machine, err), n.log.Close())
	}
	l.nodes = append(l.nodes, n)
	go func() {
		n.err = n.cmd.Wait()
		n.log.Close()
		close(n.ended)
	}()
	return n, nil
}

// LogPath is the file with what the process writes.
func (n *Node) LogPath() string { return n.Dir + ".log" }

// Log is what it wrote up to now.
func (n *Node) Log() string {
	b, err := os.ReadFile(n.LogPath())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Kill ends the process without warning, if it runs, and waits for its end.
func (n *Node) Kill() error {
	if err := n.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("natlab: kill the node on %s: %w", n.Name, err)
	}
	<-n.ended
	return nil
}

// Ended is closed when the process is gone; Err then says how it ended.
func (n *Node) Ended() <-chan struct{} { return n.ended }

// Err is what the process ended with.
func (n *Node) Err() error {
	<-n.ended
	return n.err
}

// Status is what the node says of itself.
func (n *Node) Status(ctx context.Context) (status.Snapshot, error) {
	c, err := status.Dial(n.Dir)
	if err != nil {
		return status.Snapshot{}, err
	}
	return c.Snapshot(ctx)
}

// Final is what the node wrote when it ended.
func (n *Node) Final() (status.Snapshot, error) {
	var s status.Snapshot
	b, err := os.ReadFile(filepath.Join(n.Dir, status.FinalFile))
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	return s, err
}

// lookEvery is how often a condition is looked at: times are measured to that.
const lookEvery = 100 * time.Millisecond

// Await waits until a condition holds for what the node says of itself, and returns how
// long that took.
func (n *Node) Await(ctx context.Context, what string, holds func(status.Snapshot) bool) (time.Duration, error) {
	began := time.Now()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var last status.Snapshot
	for {
		if s, err := n.Status(ctx); err == nil {
			if last = s; holds(s) {
				return time.Since(began), nil
			}
		}
		select {
		case <-tick.C:
		case <-n.ended:
			return 0, fmt.Errorf("natlab: %s: the node on %s ended (%v):\n%s", what, n.Name, n.err, tail(n.Log()))
		case <-ctx.Done():
			return 0, fmt.Errorf("natlab: %s: not on %s within %v; it shows:\n%s\n%s", what, n.Name, time.Since(began).Round(time.Second), peersText(last), tail(n.Log()))
		}
	}
}

// peersText is the peers of a snapshot, one a line.
func peersText(s status.Snapshot) string {
	var b strings.Builder
	for _, p := range s.Peers {
		fmt.Fprintf(&b, "%s %s %s %s %s\n", p.Called(), p.State, p.Link, p.Addr, p.Reason)
	}
	return b.String()
}

// tailLines is what a failure shows of a log.
const tailLines = 30

func tail(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

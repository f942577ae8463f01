package testnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"atoll/node/status"
	"atoll/optimizer/trainer/external/family"
	"atoll/testnet/controls"
	"atoll/testnet/shaping"
)

// member is one node of a world: a folder, and the processes that have run on
// it one after the other.
type member struct {
	index    int
	dir      string
	divisor  float64
	slow     float64      // times slower than that, by chaos
	inverted bool         // it lies, by chaos
	link     shaping.Link // as it is now
	traits   []string     // of its link, by chaos
	lossy    []string     // the same, of the packets that are lost
	could    capacity     // of its uplink
	joiner   bool         // came by chaos
	planned  time.Time    // when it was to begin
	lives    []*life
}

// life is one process of a node.
type life struct {
	cmd    *exec.Cmd
	family *family.Family // the process and what it has started
	log    *os.File
	client *status.Client
	began  time.Time
	ended  time.Time // zero while it runs
	asked  bool      // to leave
	killed bool
	paused bool
	seen   bool
	last   status.Snapshot // newest that was seen; the final one after an orderly end
	final  bool            // last is what the node wrote when it ended
	told   controls.Orders // what it was told last
	usage  []usage         // what it took, as it was seen
	plan   int             // the most steps that it planned for a delta, as it was seen
}

// exit says how a process ended.
type exit struct {
	member *member
	life   *life
	err    error
}

func (m *member) name() string { return nodeName(m.index) }

// current is the process that runs, or nil.
func (m *member) current() *life {
	if n := len(m.lives); n > 0 && m.lives[n-1].ended.IsZero() {
		return m.lives[n-1]
	}
	return nil
}

// newest is the newest process, running or not, or nil.
func (m *member) newest() *life {
	if len(m.lives) == 0 {
		return nil
	}
	return m.lives[len(m.lives)-1]
}

// start begins a process with these arguments and sends its exit to exits.
func (m *member) start(binary string, args []string, exits chan<- exit) error {
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return fmt.Errorf("start %s: %w", m.name(), err)
	}
	log, err := os.OpenFile(filepath.Join(m.dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: %w", m.name(), err)
	}
	l := &life{cmd: exec.Command(binary, args...), log: log, began: time.Now()}
	l.cmd.Stdout, l.cmd.Stderr = log, log
	l.cmd.Env = append(childEnv(os.Environ()), m.mark())
	if err := l.begin(); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", m.name(), err), log.Close())
	}
	m.lives = append(m.lives, l)
	go func() { exits <- exit{m, l, l.cmd.Wait()} }()
	return nil
}

// begin starts the process and notes its family: only the testnet passes the terminal's
// interrupt on to it.
func (l *life) begin() (err error) {
	family.Prepare(l.cmd)
	if err = l.cmd.Start(); err != nil {
		return err
	}
	if l.family, err = family.Of(l.cmd.Process); err != nil {
		l.cmd.Process.Kill()
		l.cmd.Wait()
	}
	return err
}

// markVariable is in the environment of a node and of all that it starts, so that the testnet
// finds what is left of them.
const markVariable = "ATOLL_TESTNET_NODE="

// mark is that variable of a node.
func (m *member) mark() string { return markVariable + m.dir + string(os.PathSeparator) }

// kernelVariable is the one setting of the environment that nodes share with
// the testnet; the flags of a node say everything else.
const kernelVariable = "ATOLL_KERNEL="

// childEnv leaves out the settings that are meant for the testnet itself.
func childEnv(env []string) []string {
	var kept []string
	for _, v := range env {
		if !strings.HasPrefix(v, "ATOLL_") || strings.HasPrefix(v, kernelVariable) {
			kept = append(kept, v)
		}
	}
	return kept
}

// snapshot asks the process for its newest status.
func (l *life) snapshot(ctx context.Context, dir string) (status.Snapshot, error) {
	if l.client == nil {
		client, err := status.Dial(dir)
		if err != nil {
			return status.Snapshot{}, err
		}
		l.client = client
	}
	return l.client.Snapshot(ctx)
}

// end notes that the process has ended and reads what it left.
func (m *member) end(l *life, at time.Time) error {
	l.ended = at
	err := l.log.Close()
	if l.killed {
		return err
	}
	s, readErr := status.ReadFinal(m.dir)
	if readErr == nil && !status.Died(m.dir) && !s.Started.Before(l.began.Add(-clockSlack)) {
		l.last, l.seen, l.final = s, true, true
	}
	return err
}

// end is how the process ended or is about to: killed, done with the whole run,
// or left before. It is empty while the process takes part.
func (l *life) end() string {
	switch {
	case l.killed:
		return "killed"
	case l.seen && l.last.Finished:
		return "done"
	case !l.ended.IsZero():
		return "left"
	}
	return ""
}

// clockSlack forgives the difference between the moment at which this process
// noted a start and the one that the node noted.
const clockSlack = time.Second

// Parts of a log that a failure shows.
const (
	logTailBytes = 16 << 10
	logTailLines = 12
)

// logTail returns the last lines of a node's log.
func logTail(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, logFile))
	if err != nil {
		return err.Error()
	}
	b = bytes.TrimSpace(b[max(0, len(b)-logTailBytes):])
	lines := strings.Split(string(b), "\n")
	return strings.Join(lines[max(0, len(lines)-logTailLines):], "\n")
}

// leave asks the process to leave in order.
func (l *life) leave() error {
	l.asked = true
	if l.paused {
		if err := l.resume(); err != nil {
			return err
		}
	}
	if err := l.family.Interrupt(); err == nil || l.client == nil {
		return err
	}
	// Windows interrupts within a console alone, which there is none of in a pipe or a service.
	ctx, cancel := context.WithTimeout(context.Background(), leaveRequest)
	defer cancel()
	if err := l.client.Leave(ctx); !errors.Is(err, status.ErrNotRunning) {
		return err
	}
	return nil // it has ended
}

// leaveRequest is how long a node may take to answer that it leaves: it does so in milliseconds.
const leaveRequest = 5 * time.Second

// kill ends the process and all it may have started, without warning.
func (l *life) kill() error {
	l.killed = true
	return l.family.Kill()
}

func (l *life) pause() error {
	l.paused = true
	return l.family.Pause()
}

func (l *life) resume() error {
	l.paused = false
	return l.family.Resume()
}

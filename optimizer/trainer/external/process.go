package external

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"atoll/optimizer/trainer/external/family"
)

// Environment of a learner: where its node listens, and the secret of this start.
const (
	EnvAddress = "ATOLL_LEARNER"
	EnvToken   = "ATOLL_TOKEN"
)

// Times of a process.
const (
	// helloWithin is how long a start may take: a framework that is read from a slow disk for
	// the first time takes a minute.
	helloWithin = 3 * time.Minute
	// stopWithin is how long a learner may take to end by itself, and to be found dead. A data-parallel group
	// has three processes to end, and a framework takes seconds for each on a busy machine.
	stopWithin = 15 * time.Second
	// tailWithin is how much longer than its process stderr is read: others that it started may
	// hold it open for ever.
	tailWithin = 500 * time.Millisecond
)

// Last words of a process: enough for the traceback of an error.
const (
	wordLines = 30
	lineBytes = 400
)

// process is one start of the learner's command.
type process struct {
	words words
	cmd   *exec.Cmd
	all   *family.Family // the process and what it has started
	ended chan struct{}  // closed when the process is gone
	err   error          // how it ended; after ended
}

// start runs a command and waits for its hello.
func start(ctx context.Context, command Run, log func(line string)) (*session, error) {
	// A learner that is quick would connect before its caller's end is noticed.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	listener, token, err := listen()
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	p := &process{ended: make(chan struct{}), words: words{log: log}}
	p.cmd = exec.Command(command.Args[0], command.Args[1:]...)
	p.cmd.Env = append(append(os.Environ(), command.Env...), EnvAddress+"="+listener.Addr().String(), EnvToken+"="+token)
	family.Prepare(p.cmd)
	p.cmd.SysProcAttr = shellLine(p.cmd.SysProcAttr, command.Args)
	if err := p.launch(); err != nil {
		return nil, fmt.Errorf("start the learner %q: %w; check the command of --learner", strings.Join(command.Args, " "), err)
	}
	s, err := p.accept(ctx, listener, token)
	if err != nil {
		p.kill()
		return nil, err
	}
	s.process = p
	return s, nil
}

// Greeting is what a learner says of itself before it knows of a run.
type Greeting struct {
	Name, Version, Precision string
	Devices                  []Device
}

// Greet starts a command, takes its greeting and ends it: Python, framework and device are there, or the error says what is not.
func Greet(ctx context.Context, command Run, log func(line string)) (g Greeting, err error) {
	s, err := start(ctx, command, log)
	if err != nil {
		return g, err
	}
	defer s.kill()
	return Greeting{s.hello.Name, s.hello.Version, cmp.Or(s.hello.Precision, "f32"), s.hello.Devices}, nil
}

// launch starts the command on a thread that lives as long as the process: where the system can
// end a child with its parent, it means the thread that started it.
func (p *process) launch() error {
	stderr, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	p.cmd.Stderr, p.cmd.Stdout = theirs, os.Stderr
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer stderr.Close()
		err := p.begin()
		theirs.Close()
		if started <- err; err == nil {
			p.watch(stderr)
		}
	}()
	return <-started
}

// begin starts the command and notes its family.
func (p *process) begin() (err error) {
	if err = p.cmd.Start(); err != nil {
		return err
	}
	if p.all, err = family.Of(p.cmd.Process); err != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
	return err
}

// watch reads what the process says until it ends, and a little longer.
func (p *process) watch(stderr *os.File) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.words.read(stderr)
	}()
	p.err = p.cmd.Wait()
	select {
	case <-read:
	case <-time.After(tailWithin):
	}
	close(p.ended)
}

// accept takes the connection of the learner, and its hello.
func (p *process) accept(ctx context.Context, l net.Listener, token string) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	defer closeWhen(p.ended, l)()
	r := receive(l, token)
	defer r.close()
	s, err := r.next()
	if errors.Is(err, errDeaf) {
		return nil, p.unmet(ctx)
	}
	return s, err
}

// unmet says why no learner came.
func (p *process) unmet(ctx context.Context) error {
	select {
	case <-p.ended:
		return fmt.Errorf("the learner ended before it connected: %s", p.last())
	default:
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("the learner did not connect to %s within %v; does its program use the atoll package?%s", EnvAddress, helloWithin, p.words.tail())
	}
	return ctx.Err()
}

// last says how the process ended: its exit code, what that means, and its last words.
func (p *process) last() string {
	text := "exit code 0"
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		text = exit.String()
	}
	if why := meaning(exit); why != "" {
		text += ": " + why
	}
	return text + p.words.tail()
}

// gone waits a moment for a process that seems to be dead.
func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(stopWithin):
		return false
	}
}

// kill ends the process and all that it has started.
func (p *process) kill() {
	p.all.Kill()
	<-p.ended
}

// words are the last lines that a process wrote to its stderr.
type words struct {
	log   func(line string)
	mu    sync.Mutex
	lines []string
}

func (w *words) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			w.add(line)
		}
		if err != nil {
			return
		}
	}
}

func (w *words) add(line string) {
	w.log(line)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line[:min(len(line), lineBytes)])
	w.lines = w.lines[max(0, len(w.lines)-wordLines):]
}

func (w *words) tail() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) == 0 {
		return ""
	}
	return "; its last words:\n  " + strings.Join(w.lines, "\n  ")
}

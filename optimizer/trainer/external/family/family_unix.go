//go:build unix

package family

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Family is a process group.
type Family struct{ head *os.Process }

// Of returns the family of a process whose command Prepare has seen.
func Of(head *os.Process) (*Family, error) { return &Family{head}, nil }

// Kill ends all of the family at once. That they have ended already is no error.
func (f *Family) Kill() error {
	if err := syscall.Kill(-f.head.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill process group %d: %w", f.head.Pid, err)
	}
	return nil
}

// Interrupt asks the first process to leave in order.
func (f *Family) Interrupt() error { return f.signal(syscall.SIGINT) }

// Pause stops the first process until Resume.
func (f *Family) Pause() error { return f.signal(syscall.SIGSTOP) }

// Resume lets the first process go on.
func (f *Family) Resume() error { return f.signal(syscall.SIGCONT) }

// signal sends a signal to the first process alone; one that has ended is no error.
func (f *Family) signal(s syscall.Signal) error {
	if err := f.head.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to process %d: %w", s, f.head.Pid, err)
	}
	return nil
}

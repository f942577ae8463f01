package family

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Family is a job: what a process of it starts belongs to it as well. The system ends a job when
// its last handle closes, as when this process dies.
type Family struct {
	head *os.Process
	job  windows.Handle
}

// Prepare gives a command a family of its own, which a Ctrl-C in the terminal does not reach.
func Prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// ended is the exit code of what is killed: that of a process that SIGKILL ends, as shells show it.
const ended = 137

// Of returns the family of a process whose command Prepare has seen. What the process has started
// before is not of the family, so call it at once.
func Of(head *os.Process) (*Family, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	f := &Family{head, job}
	runtime.AddCleanup(f, func(job windows.Handle) { windows.CloseHandle(job) }, job)
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return nil, os.NewSyscallError("SetInformationJobObject", err)
	}
	return f, f.with(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, "AssignProcessToJobObject", func(p windows.Handle) error {
		return windows.AssignProcessToJobObject(job, p)
	})
}

// with opens the first process for a call. That it has ended is no error.
func (f *Family) with(access uint32, name string, call func(windows.Handle) error) error {
	p, err := windows.OpenProcess(access, false, uint32(f.head.Pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) { // there is no such process
		return nil
	}
	if err == nil {
		err = call(p)
		windows.CloseHandle(p)
	}
	if err != nil {
		return fmt.Errorf("process %d: %s: %w", f.head.Pid, name, err)
	}
	return nil
}

// Kill ends all of the family at once. That they have ended already is no error.
func (f *Family) Kill() error {
	defer runtime.KeepAlive(f)
	return os.NewSyscallError("TerminateJobObject", windows.TerminateJobObject(f.job, ended))
}

// Interrupt asks the first process to leave in order. Both need to be of one console.
func (f *Family) Interrupt() error {
	return os.NewSyscallError("GenerateConsoleCtrlEvent", windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(f.head.Pid)))
}

// Pause stops the first process until Resume.
func (f *Family) Pause() error { return f.call("NtSuspendProcess") }

// Resume lets the first process go on.
func (f *Family) Resume() error { return f.call("NtResumeProcess") }

// call calls a function of ntdll that takes a process. No documented one does what they do.
func (f *Family) call(name string) error {
	function := windows.NewLazySystemDLL("ntdll.dll").NewProc(name)
	return f.with(windows.PROCESS_SUSPEND_RESUME, name, func(p windows.Handle) error {
		if status, _, _ := function.Call(uintptr(p)); status != 0 {
			return windows.NTStatus(status)
		}
		return nil
	})
}

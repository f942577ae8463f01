package testnet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// commandBytes is how much of a command line tells what a process is.
const commandBytes = 100

// relatives lists the processes in whose environment a variable begins so. Those that have ended
// and wait for their parent have none any more.
func relatives(mark string) (all []relative, err error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		return nil, fmt.Errorf("list processes in /proc: %d found, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil { // it has ended, or is somebody else's
			continue
		}
		r, marked := relative{}, false
		for v := range bytes.SplitSeq(env, []byte{0}) {
			marked = marked || strings.HasPrefix(string(v), mark)
			if rank, is := strings.CutPrefix(string(v), "RANK="); is {
				r.rank = rank
			}
		}
		if marked && r.read(dir) == nil {
			all = append(all, r)
		}
	}
	return all, nil
}

// read fills in what its folder says of a process.
func (r *relative) read(dir string) (err error) {
	if r.pid, err = strconv.Atoi(filepath.Base(dir)); err != nil {
		return err
	}
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return err
	}
	r.command = strings.TrimSpace(string(bytes.ReplaceAll(line[:min(len(line), commandBytes)], []byte{0}, []byte{' '})))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return err
	}
	// PID (NAME) STATE PARENT ...; a name may have brackets of its own.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return fmt.Errorf("%s/stat is %q", dir, stat)
	}
	r.parent, err = strconv.Atoi(fields[1])
	return err
}

// killProcess ends a process, or a whole group where the number is negative. That it has ended
// already is no error.
func killProcess(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	return nil
}

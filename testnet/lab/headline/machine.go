package headline

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"atoll/node/hardware"
	"atoll/tensor"
)

// Machine is what a row ran on.
type Machine struct {
	Processor string  `json:"processor"`
	Cores     int     `json:"cores"`
	Kernel    string  `json:"kernel"` // of atoll's matrix products
	MemoryGB  float64 `json:"memory_gb,omitempty"`
	System    string  `json:"system"`
	Go        string  `json:"go"`
	Commit    string  `json:"commit"` // with + if the source is not as committed
	Load      float64 `json:"load"`   // processes that wanted a core before a run, the most of all runs; 0 = not known
}

// machineHere describes this machine and the source.
func machineHere(ctx context.Context) (Machine, error) {
	commit, err := sourceCommit(ctx)
	return Machine{
		Processor: hardware.CPUName(), Cores: runtime.NumCPU(), Kernel: tensor.Kernel(), MemoryGB: round3(float64(hardware.MemoryBytes()) / 1e9),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Commit: commit, Load: loadAverage(),
	}, err
}

// changedMark follows a commit if the source is not as committed.
const changedMark = "+"

// commitDigits are enough to tell commits apart.
const commitDigits = 8

func sourceCommit(ctx context.Context) (string, error) {
	head, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := git(ctx, "status", "--porcelain", "--untracked-files=no", "--", "*.go", "*.s", "*.py", "go.mod", "go.sum")
	if err != nil {
		return "", err
	}
	if changed != "" {
		return head[:commitDigits] + changedMark, nil
	}
	return head[:commitDigits], nil
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w; run this in a clone of the repository", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// loadAverage is how many processes wanted a core in the last minute, 0 where the system does not say.
func loadAverage() (load float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, _ = fmt.Sscan(string(text), &load) // 0 = not known
	}
	return load
}

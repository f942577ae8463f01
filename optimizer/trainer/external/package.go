package external

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// embedded is the Python package, so that a learner for PyTorch comes with the program.
//
//go:embed all:python/atoll
var embedded embed.FS

// modules are the learners of the package, by the names that --learner has for them.
var modules = map[string]string{"torch": "atoll.torch", "idle": "atoll.idle", "hf": "atoll.hf", "jax": "atoll.jax", "mlx": "atoll.mlx"}

// standIn is the learner that this program is itself: package standin.
const standIn = "standin"

// group is what --learner has before the number of a data-parallel group's processes.
const group = "torchrun:"

// ErrProcesses says that a number of processes cannot be meant.
var ErrProcesses = errors.New("the processes of a data-parallel group")

// grouped are the modules that can be data-parallel groups; without a name it is the first.
var grouped = []string{"torch", "hf"}

// maxProcesses bounds those of a data-parallel group: no machine has more accelerators.
const maxProcesses = 64

// Command is how a command line is run whose learner has its folder in dir. A line is one of these:
//
//	attach                    see Attach
//	NAME FLAGS                a name of modules, such as torch --device cuda
//	torchrun:N [NAME] FLAGS   a data-parallel group of N processes of such a program
//	standin FLAGS             this program itself, see standIn
//	anything else             a line for the system's shell, with the rules of quoting that users know
//
// The package is unpacked into dir, and Python finds it.
func Command(line, dir string) (c Run, err error) {
	name, flags, _ := strings.Cut(strings.TrimSpace(line), " ")
	if name == Attach {
		if flags != "" {
			return c, fmt.Errorf("--learner %q: %s takes no flags: give them to the script", line, Attach)
		}
		c.Attach, err = filepath.Abs(filepath.Join(dir, attachFile))
		return c, err
	}
	python, named, err := pythonLine(name, flags)
	if err != nil {
		return c, err
	}
	path, err := unpack(dir)
	if err != nil {
		return c, fmt.Errorf("unpack the Python package: %w", err)
	}
	c.Env = []string{"PYTHONPATH=" + strings.TrimSuffix(path+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"), string(os.PathListSeparator))}
	if name == standIn {
		program, err := os.Executable()
		c.Args = append([]string{program, standIn}, strings.Fields(flags)...)
		return c, err
	}
	if named {
		line = python
	}
	switch {
	case runtime.GOOS == "windows":
		c.Args = []string{"cmd", "/c", line}
	case named:
		c.Args = []string{"sh", "-c", "exec " + line} // no shell in between, which would have to be ended too
	default:
		c.Args = []string{"sh", "-c", line}
	}
	if _, said := os.LookupEnv(threads); strings.HasPrefix(name, group) && !said {
		c.Env = append(c.Env, threads+"=1") // which torchrun takes by itself, with a warning of five lines
	}
	return c, nil
}

// threads is how many each process of a data-parallel group uses on the CPU, unless it has --threads.
const threads = "OMP_NUM_THREADS"

// python is the program that runs Python: installers for Windows leave out the 3.
func python() string {
	if runtime.GOOS == "windows" {
		return "python"
	}
	return "python3"
}

// pythonLine is the shell's line for a name of modules or a data-parallel group; named says that it is one.
func pythonLine(name, flags string) (line string, named bool, err error) {
	if module := modules[name]; module != "" {
		return python() + " -m " + module + " " + flags, true, nil
	}
	number, is := strings.CutPrefix(name, group)
	if !is {
		return "", false, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > maxProcesses {
		return "", false, fmt.Errorf("--learner %q: %w are 1 to %d, such as torchrun:2", name, ErrProcesses, maxProcesses)
	}
	program, rest, _ := strings.Cut(flags, " ")
	switch {
	case program == "" || strings.HasPrefix(program, "-"):
		program, rest = grouped[0], flags
	case !slices.Contains(grouped, program):
		return "", false, fmt.Errorf("--learner %q: %q cannot be a data-parallel group; use %s %s and flags, or write the line of your own torchrun", name+" "+flags, program, name, strings.Join(grouped, " or "))
	}
	return fmt.Sprintf("%s -m torch.distributed.run --standalone --nproc-per-node %d -m %s %s", python(), n, modules[program], rest), true, nil
}

// HasRank says whether the learner of a command line may have a process of this rank. Nobody knows how many
// processes the line of somebody's own torchrun has.
func HasRank(line, rank string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	number, is := strings.CutPrefix(name, group)
	if !is {
		return strings.Contains(line, "torchrun") || strings.Contains(line, "torch.distributed")
	}
	n, err := strconv.Atoi(number)
	r, err2 := strconv.Atoi(rank)
	return err == nil && err2 == nil && r < n
}

// Run is how a program is run.
type Run struct {
	Args []string // program and arguments
	Env  []string // beside the environment of this process

	// Attach is the file by which a script that runs already finds its node, in place of all that.
	Attach string
}

// unpack writes the package to a folder that is named by what is in it, and returns that.
func unpack(dir string) (string, error) {
	files, digest, err := sources()
	if err != nil {
		return "", err
	}
	root := filepath.Join(dir, "python-"+digest[:12])
	for name, b := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if known, err := os.ReadFile(path); err == nil && string(known) == string(b) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return "", err
		}
	}
	return filepath.Abs(root)
}

// sources are the files of the package, and the digest of all of them.
func sources() (files map[string][]byte, digest string, err error) {
	files, h := map[string][]byte{}, sha256.New()
	err = fs.WalkDir(embedded, "python", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".py" {
			return err
		}
		b, err := embedded.ReadFile(path)
		name := strings.TrimPrefix(path, "python/")
		files[name] = b
		fmt.Fprintf(h, "%s %d\n%s", name, len(b), b)
		return err
	})
	return files, hex.EncodeToString(h.Sum(nil)), err
}

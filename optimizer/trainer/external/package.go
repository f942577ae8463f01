package external

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
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

// Command is how a command line is run whose learner has its folder there: a name of modules
// with its flags, such as torch --device cuda, or any line for the system's shell, which has the
// rules of quoting that users know. The package is unpacked into dir, and Python finds it.
func Command(line, dir string) (c Run, err error) {
	name, flags, _ := strings.Cut(strings.TrimSpace(line), " ")
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
	module, known := modules[name]
	if known {
		line = "python3 -m " + module + " " + flags
	}
	switch {
	case runtime.GOOS == "windows":
		c.Args = []string{"cmd", "/c", line}
	case known:
		c.Args = []string{"sh", "-c", "exec " + line} // no shell in between, which would have to be ended too
	default:
		c.Args = []string{"sh", "-c", line}
	}
	return c, nil
}

// Run is how a program is run.
type Run struct {
	Args []string // program and arguments
	Env  []string // beside the environment of this process
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

package natlab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
)

// variable turns the laboratory on. Its tests take a minute or two each, and root.
const variable = "ATOLL_HOME"

var binary string // of the program, built once

func TestMain(m *testing.M) {
	if args := os.Getenv(helperVariable); args != "" {
		if err := helper(strings.Split(args, " ")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv(variable) == "" || Able() != nil {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "natlab")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "atoll")
	if out, err := exec.Command("go", "build", "-o", binary, "atoll/cmd/atoll").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// world makes a laboratory for a test, beside those of others: their nodes rest most of the time.
func world(t *testing.T, n Net) *Lab {
	t.Helper()
	t.Parallel()
	return alone(t, n)
}

// alone makes a laboratory for a test that takes the whole machine.
func alone(t *testing.T, n Net) *Lab {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skipf("worlds of routers run with %s=1, as root on Linux", variable)
	}
	if err := Able(); err != nil {
		t.Skip(err)
	}
	l, err := New(binary, t.TempDir(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			keep(t, l)
		}
	})
	return l
}

// keepVariable names a folder to which worlds in which a test failed are moved.
const keepVariable = "ATOLL_HOME_KEEP"

// keep moves what the nodes of a failed test wrote to a place where somebody can read it.
func keep(t *testing.T, l *Lab) {
	to := os.Getenv(keepVariable)
	if to == "" {
		return
	}
	to = filepath.Join(to, fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().Unix()))
	logs, err := filepath.Glob(l.path("*.log"))
	if err != nil {
		t.Fatal(err)
	}
	finals, _ := filepath.Glob(l.path("*/" + status.FinalFile))
	for _, from := range append(logs, finals...) {
		name := strings.ReplaceAll(strings.TrimPrefix(from, l.dir+"/"), "/", "-")
		b, err := os.ReadFile(from)
		if err := errors.Join(err, os.MkdirAll(to, 0o755), os.WriteFile(filepath.Join(to, name), b, 0o644)); err != nil {
			t.Log(err)
		}
	}
	t.Log("what its nodes wrote is in", to)
}

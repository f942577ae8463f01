package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run this program.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"atoll": main})
}

// TestScripts runs testdata/script: each file is a session at a shell.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"damage": damage},
		Setup: func(env *testscript.Env) error {
			// The go command finds the text that ships with Go.
			for _, name := range []string{"GOROOT", "GOCACHE", "GOPATH"} {
				if value, ok := os.LookupEnv(name); ok {
					env.Setenv(name, value)
				}
			}
			env.Setenv("GOFLAGS", "")
			env.Setenv("GOTOOLCHAIN", "local")
			return nil
		},
	})
}

// damage flips one bit of one file in a folder.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	entries, err := os.ReadDir(dir)
	ts.Check(err)
	path := filepath.Join(dir, entries[0].Name())
	b, err := os.ReadFile(path)
	ts.Check(err)
	b[len(b)/2] ^= 1
	ts.Check(os.WriteFile(path, b, 0o600))
}

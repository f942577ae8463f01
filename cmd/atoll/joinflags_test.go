package main

import (
	"io"
	"reflect"
	"slices"
	"testing"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node"

	"github.com/alecthomas/kong"
)

// sampleFlags is a value of each flag of join that is not its default.
var sampleFlags = map[string]string{
	"genesis": "", "owner": "", // of the first node: TestSecondNodeJoins and invite.txtar type them
	"listen": "/ip4/127.0.0.1/tcp/0", "peer": "/ip4/192.0.2.1/tcp/4001/p2p/12D3KooWGzXPg3pLGLXzRAVHBrWF7qP2jiUqCTPkJY4vhzcZzLxB",
	"as": "lab 3", "data": "goroot", "data-disk": "3GB", "threads": "1", "precision": "f32", "batch": "7", "pace": "100ms",
	"up": "5mbit", "down": "20mbit", "quota": "2GB/day", "hours": "22-07", "battery": "pause",
	"init": "model", "learner": "torch", "export": "out", "every": "5000000", "no-mdns": "true", "observe": "true",
	"profile": "lan", "stay": "true", "keep": "30GB", "trace": "true", "eval-bytes": "4096",
}

// shownFlags are of what people see, not of the node.
var shownFlags = []string{"web", "log-level", "json"}

// What is typed reaches the node: each flag of join changes what it is started with.
func TestFlagsOfJoinReachTheNode(t *testing.T) {
	genesis := newRun(t, someText(t))
	dir := t.TempDir()
	config := func(args ...string) node.Config {
		t.Helper()
		var line commandLine
		app, err := kong.New(&line, kong.Name("atoll"), kong.PostBuild(environment))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := app.Parse(append([]string{"join", "--genesis", genesis, dir}, args...)); err != nil {
			t.Fatal(err)
		}
		cfg, err := line.Join.config(&cli.Console{Out: io.Discard, Err: io.Discard})
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		cfg.Log = nil
		return cfg
	}
	plain := config()
	eachCommand(t, func(n *kong.Node) {
		if n.Name != "join" {
			return
		}
		for _, f := range n.Flags {
			value, known := sampleFlags[f.Name]
			switch {
			case slices.Contains(shownFlags, f.Name):
			case !known:
				t.Errorf("--%s has no value here that is not its default: add one", f.Name)
			case value == "":
			case f.Name == "every":
				if reflect.DeepEqual(config("--every="+value, "--export=out"), config("--export=out")) {
					t.Errorf("--every goes nowhere")
				}
			case reflect.DeepEqual(config("--"+f.Name+"="+value), plain):
				t.Errorf("--%s goes nowhere", f.Name)
			}
		}
	})
}

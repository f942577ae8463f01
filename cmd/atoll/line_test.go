package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/node"
)

// typed runs a command line.
func typed(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return typedIn(t.Context(), args)
}

// typedIn does so without a test.
func typedIn(ctx context.Context, args []string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, &cli.Console{In: strings.NewReader(""), Out: &out, Err: &errs})
	return code, out.String(), errs.String()
}

func TestCommandLines(t *testing.T) {
	for _, c := range []struct {
		line   string
		code   int
		stdout string
		stderr string
	}{
		{"", 0, "Usage: atoll <command>", ""},
		{"--help", 0, "testnet", ""},
		{"version", 0, "atoll/", ""},
		{"--version", 0, "atoll/", ""},
		{"join --version", 2, "", "unknown flag --version"},
		{"help", 0, "Usage: atoll <command>", ""},
		{"help join", 0, "Usage: atoll join", ""},
		{"help sim", 0, "Usage: atoll sim", ""},
		{"help data", 0, "Usage: atoll data <command>", ""},
		{"help jion", 2, "", "unexpected argument jion, did you mean \"join\"?"},
		{"vresion", 2, "", "unexpected argument vresion, did you mean \"version\"?"},
		{"version extra", 2, "", "unexpected argument extra"},
		{"version --colour", 2, "", "unknown flag --colour"},
		{"key", 2, "", "there is no atoll folder here: go to one, or type `atoll key DIR`"},
		{"new --codec int3", 2, "", "--codec must be one of"},
		{"new --profile moon", 2, "", "--profile must be one of"},
		{"new --tokens many", 2, "", "is not a whole number"},
		{"new --tokens -5", 2, "", "\"-5\""},
		{"join absent --batch -1", 2, "", "--batch is -1"},
		{"join absent --up -5mbit", 2, "", "\"-5mbit\""},
		{"key -5", 2, "", "unknown flag -5"},
		{"new --seed=-1", 2, "", "--seed"},
		{"join", 2, "", "there is no atoll folder here: go to one, or type `atoll join DIR`; `atoll new` makes one"},
		{"join http://example.org", 2, "", `there is no folder "http://example.org"; a join link begins with "atoll:"`},
		{"invite --uses 0", 2, "", "--uses is 0; use more, or leave it out for the default"},
		{"new --h 0", 2, "", "--h is 0"},
		{"join absent --threads 0", 2, "", "--threads is 0"},
		{"testnet --pace 0s --nodes 0", 2, "", "--nodes"},
		{"status absent --dir x", 2, "", "a folder is typed without --dir"},
		{"status line_test.go", 2, "", `"line_test.go" is a file: type a folder`},
		{"new line_test.go", 2, "", `"line_test.go" is a file: type a folder`},
		{"join absent atoll:12", 2, "", `"atoll:12" is cut or mistyped`},
		{"join atoll:12 atoll:13", 2, "", "\"atoll:12\" is cut or mistyped"},
		{"join absent other", 2, "", `"absent" and "other" are two folders: a join link begins with "atoll:"`},
		{"join atoll:12", 2, "", `"atoll:12" is cut or mistyped`},
		{"join atoll:" + strings.Repeat("ab", 32) + " --genesis x", 2, "", "pass either a join link or --genesis, not both"},
		{"testnet --web 7070", 2, "", `--web: page at "7070": it is no address with a port; use 127.0.0.1:7070`},
		{"join atoll:" + strings.Repeat("ab", 32) + " absent --web :7070", 2, "", `it names no host; use 127.0.0.1:7070`},
		{"join absent --threads=-1", 2, "", "--threads is -1"},
		{"join absent --batch=-1", 2, "", "--batch is -1"},
		{"join absent --batch=5000", 2, "", "--batch is 5000"},
		{"join absent --pace=-1s", 2, "", "--pace is -1s"},
		{"join absent --eval-bytes=-1", 2, "", "--eval-bytes is -1"},
		{"join absent --peer localhost:1", 2, "", `--peer "localhost:1" is not an address`},
		{"join absent --up 5", 2, "", `"5" is not the rate of a link`},
		{"join absent --keep 10", 2, "", `--keep: "10" has no unit; write it like 10GB or 500MB`},
		{"join absent --keep 10XB", 2, "", `--keep: "10XB" is not a size`},
		{"join absent --data-disk 20", 2, "", `"20" has no unit`},
		{"join absent --up 20MB", 2, "", `bytes: write bits, such as 160mbit`},
		{"new --tokens 20X", 2, "", `write it like 20M, 3e6 or 3000000`},
		{"join absent --quota 300GB", 2, "", `"300GB" is not a quota; write it like 300GB/month`},
		{"join absent --quota 300GB/year", 2, "", `use month or day`},
		{"join absent --hours 22", 2, "", `--hours: "22" are no hours; write them like 22-07`},
		{"join absent --battery full", 2, "", "--battery must be one of"},
		{"pause .", 1, "", "no node is running"},
		{"resume .", 1, "", "no node is running"},
		{"testnet-node absent --shape speed=1", 2, "", "--shape: link"},
		{"sim --seeds=-1", 2, "", "--seeds is -1"},
		{"sim --nodes=-1", 2, "", "--nodes is -1"},
		{"sim --nodes 3 --rounds 0", 2, "", "--rounds is 0; use 1 or more\nRun `atoll sim --help`"},
		{"sim --faults x", 2, "", "--faults needs --nodes"},
		{"sim --link rate=1mbit", 2, "", "--link needs --nodes"},
		{"sim --nodes 2 --link speed=1mbit", 2, "", "--link: link \"speed=1mbit\": \"speed=1mbit\" is no trait of a link"},
		{"sim --nodes 2 --link 2:rate=1mbit", 2, "", "--link: 2:rate=1mbit: there is no node 2; use 0 to 1"},
		{"sim --nodes 2 --link rate=1mbit --payload much", 2, "", "--payload \"much\": write an amount such as 100kB"},
		{"sim --nodes 2 --rounds 2 --link rate=10mbit,delay=5ms --payload 10kB --delta-time 1s", 0, "promises", ""},
		{"sim --script absent", 1, "", "read the script: open absent"},
		{"sim --scenario absent", 1, "", "read the scenario: open absent"},
		{"testnet --codec int3", 2, "", "--codec must be one of"},
		{"testnet --baseline ring", 2, "", "--baseline must be one of"},
		{"testnet --link 100mbit", 2, "", `--link: link "100mbit"`},
		{"testnet --link rate=1mbit,delay=4ms --link 4:up=1mbit", 2, "", "--link names node 4: there are only nodes 0 to 3"},
		{"testnet --link 3:up=1mbit,jitter=1ms", 2, "", "jitter is 1ms: use at most the delay, 0s"},
		{"testnet --link rate=1mbit --chaos link_0_delay=1h_@60s..120s", 2, "", "delay is 1h0m0s: use 0s to 10s"},
		{"testnet --trace --baseline dp", 2, "", "--trace is of deltas, which dp has none of"},
		{"sim --trace-out x --seeds 2", 2, "", "--trace-out is of one world"},
		{"trace", 2, "", "there is no atoll folder here"},
		{"trace absent", 1, "", "read the trace: stat absent"},
		{"baseline --kind dp", 2, "", "missing flags"},
		{"baseline --kind dp --genesis x x --coordinator x --shape x", 2, "", "--shape: link"},
		{"baseline --kind dp --genesis absent x --coordinator x", 1, "", "genesis: open absent"},
		{"new --model base", 2, "", "that of --model has 4096 tokens, and a text has 256, its bytes: make a corpus"},
		{"new --from absent --model small --tokens 9", 2, "", "--from and --model small are two models"},
		{"new --tokens 0", 2, "", "--tokens is 0"},
		{"new --batch=-1", 2, "", "--batch is -1"},
		{"new --h=-1", 2, "", "--h is -1"},
		{"new --lr=11", 2, "", "--lr is 11"},
		{"new --lr=NaN", 2, "", "--lr is NaN"},
		{"new --fragments=-1", 2, "", "--fragments is -1"},
		{"new --learners-per-round=2", 2, "", "--learners-per-round is 2; use 3 to 4096"},
		{"new --learners-per-round=4097", 2, "", "--learners-per-round is 4097; use 3 to 4096"},
		{"new --fragments=39", 2, "", "--fragments is 39; the model has only 38 tensors"},
		{"testnet --tokens 0", 2, "", "--tokens is 0"},
		{"testnet --h=-1", 2, "", "--h is -1"},
		{"testnet --batch=-1", 2, "", "--batch is -1"},
		{"testnet --chaos explode", 2, "", "use one of join, leave, kill, start, pause, resume"},
		{"join --genesis absent.genesis", 1, "", "make one with `atoll new`"},
		{"join --profile moon", 2, "", "--profile must be one of"},
		{"join --log-level loud", 2, "", "--log-level must be one of"},
		{"join --pace fast", 2, "", "--pace"},
		{"generate --length=0", 2, "", "--length is 0; use 1 or more"},
		{"generate --temperature=-1", 2, "", "--temperature is -1"},
		{"generate --top-k=-1", 2, "", "--top-k is -1"},
		{"generate --top-p=2", 2, "", "--top-p is 2"},
		{"new --model huge", 2, "", `model "huge": use tiny, small, base`},
		{"testnet --model huge", 2, "", `model "huge": use tiny, small, base`},
		{"join absent --listen localhost:1", 2, "", "--listen: listen address \"localhost:1\""},
		{"leave --timeout=-1s", 2, "", "--timeout is -1s"},
		{"pause --timeout=0s", 2, "", "--timeout is 0s"},
		{"resume --timeout=-1s", 2, "", "--timeout is -1s"},
		{"data build --out x --held-out 2 y", 2, "", "--held-out is 2; use a share"},
		{"data mix --out x a b=1", 2, "", `"a" has no weight: write the folder and its weight`},
		{"data mix --out x a=1 b=-2", 2, "", `"-2" is no weight: use a number above 0`},
		{"data mix --out x a=NaN b=1", 2, "", `"NaN" is no weight`},
		{"data mix --out x a=1000000 b=0.000001", 2, "", "the weights are too far apart"},
		{"data mix --out x a=1", 1, "", "a mixture is of 2 to 16 corpora, and these are 1"},
		{"doctor --try --learner torchrun:0", 2, "", "data-parallel group are 1 to"},
		{"doctor --try", 2, "", "--try needs --learner CMD"},
		{"new --bandwidth 1kbit --step 1ms", 2, "", "--bandwidth: steps of 0.001 s are so short"},
		{"new --h=-1", 2, "", "--h is -1"},
		{"bench --seconds=-1", 2, "", "--seconds is -1"},
		{"bench --seconds=NaN", 2, "", "--seconds is NaN"},
		{"bench --threads=-1", 2, "", "--threads is -1"},
		{"bench --threads x", 2, "", "--threads"},
		{"bench --model absent.json", 1, "", "absent.json"},
		{"bench --model huge", 2, "", `model "huge": use tiny, small, base`},
		{"bench --model tiny --seconds 0 absent/folder", 1, "", "choose another folder"},
		{"bench a step", 2, "", "unexpected argument step"},
		{"bench --model tiny --threads 1 --seconds 0 --json", 0, `{"model":"tiny","params":824448,"threads":1,`, ""},
		{"sim goodput", 2, "", "unexpected argument goodput"},
		{"data paint", 2, "", "unexpected argument paint"},
		{"data biuld", 2, "", "unexpected argument biuld, did you mean \"build\"?"},
		{"tesnet", 2, "", "unexpected argument tesnet, did you mean \"testnet\"?"},
		{"verify", 2, "", "there is no atoll folder here"},
		{"--config absent.toml version", 2, "", "absent.toml"},
	} {
		t.Run(c.line, func(t *testing.T) {
			code, stdout, stderr := typed(t, strings.Fields(c.line)...)
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d, %q, %q", code, stdout, stderr, c.code, c.stdout, c.stderr)
			}
			if code == exitUsage && !strings.Contains(stderr, "--help` to see what there is") {
				t.Errorf("stderr %q names no help", stderr)
			}
		})
	}
}

// Every command explains itself with an example.
func TestHelpHasExamples(t *testing.T) {
	var line commandLine
	app, err := kong.New(&line)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range app.Model.Leaves(true) {
		path := strings.Fields(strings.TrimPrefix(leaf.FullPath(), app.Model.Name))
		code, stdout, _ := typed(t, append(path, "--help")...)
		if example := "    atoll " + strings.Join(path, " "); code != 0 || !strings.Contains(stdout, example) {
			t.Errorf("%v: exit code %d, no example in %s", path, code, stdout)
		}
	}
}

func TestExitCodes(t *testing.T) {
	refusal := &hello.Refusal{Field: hello.FieldRun, Ours: "a", Theirs: "b"}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{errSilent, 1},
		{cli.BadUsage("x"), 2},
		{fmt.Errorf("join: %w", refusal), 3},
		{fmt.Errorf("join: %w", p2p.ErrRefusedByPeer), 3},
		{fmt.Errorf("join: %w", node.ErrNoPeers), 4},
		{fmt.Errorf("ask: %w", context.DeadlineExceeded), 4},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

func TestConfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.toml")
	for _, c := range []struct {
		toml, want string // in stderr of `atoll generate`
	}{
		{"[generate]\nlength = 0", "--length is 0"},
		{"length = -3", "--length is -3"},
		{"length = 5\n[generate]\nlength = -4", "--length is -4"},
		{"[generate]\ntemperature = -0.5", "--temperature is -0.5"},
		{"tokns = 5", path + `, line 1: no command has a flag "tokns"; did you mean "tokens"?`},
		{"[generate]\ndata = \"x\"", `atoll generate has no flag "data"`},
		{"[paint]\ndata = \"x\"", "table [paint]: there is no such command"},
		{"[generate]\nlength = ", path + ", line 2: toml"},
		{"name = \"" + strings.Repeat("x", 1<<20) + "\"", "is it the right file?"},
	} {
		if err := os.WriteFile(path, []byte(c.toml), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := typed(t, "--config", path, "generate")
		if code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%.40q: exit code %d, stderr %q; want %q", c.toml, code, stderr, c.want)
		}
	}
}

// A list of links is a list, although a link has commas of its own.
func TestLinksFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.toml")
	for toml, want := range map[string]string{
		`link = ["rate=100mbit,delay=40ms", "9:up=5mbit,down=100mbit"]`: "--link names node 9",
		`link = "rate=100mbit,delay=1h"`:                                "delay is 1h0m0s",
	} {
		if err := os.WriteFile(path, []byte("[testnet]\n"+toml), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := typed(t, "--config", path, "testnet")
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, stderr %q; want %q", toml, code, stderr, want)
		}
	}
}

func TestFlagsBeforeEnvironmentBeforeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.toml")
	if err := os.WriteFile(path, []byte("[generate]\nlength = -1"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ATOLL_CONFIG", path)
	if _, _, stderr := typed(t, "generate"); !strings.Contains(stderr, "--length is -1") {
		t.Errorf("from the file: %s", stderr)
	}
	t.Setenv("ATOLL_GENERATE_LENGTH", "-2")
	if _, _, stderr := typed(t, "generate"); !strings.Contains(stderr, "--length is -2") {
		t.Errorf("from the environment: %s", stderr)
	}
	t.Setenv("ATOLL_LENGTH", "3e6")
	if _, _, stderr := typed(t, "generate", "--length=-3"); !strings.Contains(stderr, "--length is -3") {
		t.Errorf("from the flag: %s", stderr)
	}
}

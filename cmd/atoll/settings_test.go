package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"
	"pgregory.net/rapid"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/settings"
	"atoll/gossip/wire"
	"atoll/node"
	"atoll/node/joinlink"
	"atoll/node/status"
	"atoll/node/store"
)

// joinConfig is what a node is started with by a command line.
func joinConfig(t interface{ Fatal(...any) }, out *cli.Console, args ...string) (node.Config, *kong.Context, error) {
	var line commandLine
	app, err := kong.New(&line, kong.Name("atoll"), kong.PostBuild(environment), kong.Configuration(settings.LoadTOML))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := app.Parse(append([]string{"join"}, args...))
	if err != nil {
		t.Fatal(args, err)
	}
	line.Join.parsed = parsed
	cfg, err := line.Join.config(out)
	return cfg, parsed, err
}

// keepAndRead keeps what was typed, and reads what the folder then has.
func keepAndRead(t interface{ Fatal(...any) }, parsed *kong.Context, dir string) (now map[string]any) {
	f, err := settings.Open(context.Background(), dir, parsed)
	if err == nil {
		err = f.KeepTyped(parsed, "")
	}
	b, read := os.ReadFile(filepath.Join(dir, store.SettingsFile))
	if err = errors.Join(err, read, toml.Unmarshal(b, &now)); err != nil {
		t.Fatal(err)
	}
	return now
}

// silent is a console that nobody looks at.
func silent() *cli.Console { return &cli.Console{Out: io.Discard, Err: io.Discard} }

// otherFlags is a second value of flags that stay, where sampleFlags has the first.
var otherFlags = map[string]string{
	"up": "1gbit", "down": "2.5mbit", "quota": "1536MB/month", "hours": "mon-fri 22-07, sat-sun", "pace": "1m30s", "threads": "2", "batch": "9",
	"precision": "bf16", "web": "127.0.0.1:7071", "keep": "all", "data-disk": "1GiB", "export": "elsewhere", "every": "1.5M", "eval-bytes": "0", "profile": "local",
}

// What is typed goes before the environment, that before the file of --config, that before what the folder keeps; and what
// was typed is kept, and nothing else.
func TestWhichSettingWins(t *testing.T) {
	genesis, text := newRun(t, someText(t)), "--data=goroot"
	var names []string
	eachCommand(t, func(n *kong.Node) {
		for _, f := range n.Flags {
			if n.Name == "join" && f.Group != nil {
				names = append(names, f.Name)
			}
		}
	})
	if !slices.Contains(names, "up") || !slices.Contains(names, "web") || slices.Contains(names, "genesis") {
		t.Fatalf("these stay: %v", names)
	}
	samples := map[string][2]string{}
	same := map[string]string{} // what a node says of them
	for _, name := range names {
		first := cmp.Or(sampleFlags[name], "127.0.0.1:7070")
		samples[name] = [2]string{first, cmp.Or(otherFlags[name], first)}
		for _, value := range samples[name] {
			cfg, _, err := joinConfig(t, silent(), "--genesis", genesis, text, t.TempDir(), "--"+name+"="+value)
			if err != nil || len(cfg.Settings) != 1 {
				t.Fatal(name, value, cfg.Settings, err)
			}
			same[name+value] = cfg.Settings[0].Value
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		args, config, want := []string{"--genesis", genesis, text, dir}, "[join]\n", map[string]status.Setting{}
		k, wantKept := map[string]string{}, map[string]string{}
		for _, name := range names {
			env := envName([]string{"join"}, name)
			os.Unsetenv(env)
			draw := func(source string) (string, bool) {
				return samples[name][rapid.IntRange(0, 1).Draw(rt, name+" of "+source)], rapid.IntRange(0, 3).Draw(rt, name+" "+source) == 0
			}
			if value, given := draw("kept"); given {
				k[name], wantKept[name], want[name] = value, value, status.Setting{Value: value, From: store.SettingsFile}
			}
			if value, given := draw("config"); given {
				config += name + " = '" + value + "'\n"
				want[name] = status.Setting{Value: value, From: "--config"}
			}
			if value, given := draw("environment"); given {
				os.Setenv(env, value)
				defer os.Unsetenv(env)
				want[name] = status.Setting{Value: value, From: env}
			}
			if value, given := draw("typed"); given {
				args = append(args, "--"+name+"="+value)
				wantKept[name], want[name] = value, status.Setting{Value: value, From: store.SettingsFile}
			}
		}
		file := filepath.Join(dir, "config.toml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			rt.Fatal(err)
		}
		b, err := toml.Marshal(k)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, store.SettingsFile), b, 0o600)
		}
		if err != nil {
			rt.Fatal(err)
		}
		cfg, parsed, err := joinConfig(rt, silent(), append(args, "--config", file)...)
		if err != nil {
			rt.Fatal(err)
		}
		if len(cfg.Settings) != len(want) {
			rt.Fatalf("%v, want %v", cfg.Settings, want)
		}
		for _, s := range cfg.Settings {
			if w := want[s.Name]; s.From != w.From || s.Value != same[s.Name+w.Value] {
				rt.Fatalf("%v, want %v", s, w)
			}
		}
		now := keepAndRead(rt, parsed, dir)
		if len(now) != len(wantKept) {
			rt.Fatalf("kept %v, want %v", now, wantKept)
		}
		for name, text := range now {
			if text != wantKept[name] && text != same[name+wantKept[name]] {
				rt.Fatalf("kept --%s %s, want %s", name, text, wantKept[name])
			}
		}
	})
}

// A file that cannot be believed stops the node, which would cost more than it may, and stops systemd from starting it again.
func TestKeptFile(t *testing.T) {
	genesis, dir := newRun(t, someText(t)), t.TempDir()
	for _, c := range []struct {
		file string
		said []string // of an error, or of a note
		ok   bool
	}{
		{"", nil, true},
		{"up = '5mbit'\nthreads = 2\nstay = true\n", nil, true},
		{"up = '5mbit\n", []string{store.SettingsFile + ", line 1", "mend the file, or remove it"}, false},
		{"up = '5'\n", []string{store.SettingsFile, "--up", "rate of a link", "mend the file"}, false},
		{"battery = 'puase'\n", []string{"--battery is \"puase\"; use one of go, pause", "mend the file"}, false},
		{"hours = '25-26'\n", []string{"--hours", "mend the file"}, false},
		{"[up]\nrate = 5\n", []string{"--up", "mend the file"}, false},
		{"up = '5mbit'\nquotta = '1GB/day'\n", []string{store.SettingsFile + `, line 2: "quotta" is no setting; did you mean "quota"?`, "mend the file"}, false},
	} {
		if err := os.WriteFile(filepath.Join(dir, store.SettingsFile), []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		_, parsed, err := joinConfig(t, &cli.Console{Out: io.Discard, Err: &said}, "--genesis", genesis, "--data=goroot", "--down=1mbit", dir)
		if err != nil {
			said.WriteString(err.Error())
			if exitCode(err) != exitUsage {
				t.Errorf("%q: exit code %d", c.file, exitCode(err))
			}
		}
		for _, part := range c.said {
			if !strings.Contains(said.String(), part) {
				t.Errorf("%q: %s lacks %q", c.file, said.String(), part)
			}
		}
		if (err == nil) != c.ok {
			t.Errorf("%q: %v", c.file, err)
		}
		if !c.ok {
			continue
		}
		k := keepAndRead(t, parsed, dir)
		if k["down"] != "1mbit" || strings.Contains(c.file, "up") && k["up"] == nil {
			t.Errorf("%q: then %v", c.file, k)
		}
		if info, err := os.Stat(filepath.Join(dir, store.SettingsFile)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read it: %v, %v", info, err)
		}
	}
}

// A node is set while it runs, and both it and its folder know.
func TestSetWhileItRuns(t *testing.T) {
	text, dir := someText(t), filepath.Join(t.TempDir(), "first")
	t.Setenv("ATOLL_JOIN_DOWN", "20mbit")
	j := startNode(t, "--genesis", newRun(t, text), dir, "--listen", anyPort, "--data", text, "--up", "5mbit", "--quota", "300GB/month")
	defer j.leave(t)
	code, stdout, stderr := typed(t, "set", dir, "--up", "2mbit", "--reset", "down,quota", "--hours", "sun-sat", "--threads", "2")
	for _, part := range []string{"set: up 2mbit, down back to what the link carries, quota back to no limit, hours sun-sat\n", "set from the next start on: threads 2; to start it now: `atoll leave "} {
		if !strings.Contains(stdout, part) {
			t.Errorf("exit code %d: %s lacks %q", code, stdout, part)
		}
	}
	if !strings.Contains(stderr, "note: the node has --down from ATOLL_JOIN_DOWN, which goes before") || strings.Count(stderr, "note:") != 1 {
		t.Errorf("stderr: %s", stderr)
	}
	s := ask(t, dir)
	if s.Limits.UpPerS != 250_000 || s.Limits.DownPerS != 0 || s.Limits.Quota != nil || s.Limits.Hours != "sun-sat" {
		t.Errorf("limits are %+v", s.Limits)
	}
	has := func(name, value, from string) bool {
		return slices.Contains(s.Settings, status.Setting{Name: name, Value: value, From: from})
	}
	if !has("up", "2mbit", store.SettingsFile) || !has("hours", "sun-sat", store.SettingsFile) || !has("threads", "1", store.SettingsFile) || !has("pace", "5ms", store.SettingsFile) || len(s.Settings) != 6 {
		t.Errorf("settings are %+v", s.Settings)
	}
	if _, stdout, _ := typed(t, "status", dir); !strings.Contains(stdout, "settings  up 2mbit; hours sun-sat; pace 5ms; threads 1; batch 1; profile local\n") {
		t.Errorf("status: %s", stdout)
	}
	await(t, "a status on the disk", func() bool { _, err := status.ReadFinal(dir); return err == nil })
	if left, err := status.ReadFinal(dir); err != nil || left.Link != s.Link || left.Self != s.Self {
		t.Errorf("what is known after a kill: %v, %v", left.Identity, err)
	}
	if code, _, stderr := typed(t, "join", dir, "--up", "1mbit"); code != exitFailed || !strings.Contains(stderr, "change its settings with `atoll set ") {
		t.Errorf("a second join: exit code %d, %s", code, stderr)
	}
	if _, stdout, _ := typed(t, "set", dir); !strings.Contains(stdout, "up          2mbit ") || !strings.Contains(stdout, "settings.toml; from the next start on 2\n") {
		t.Errorf("set: %s", stdout)
	}
}

// A node that has yet to find somebody of its run is one that runs: what is set reaches it, and nothing starts beside it.
func TestSetWhileItStarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "second")
	nobody := joinlink.Link{Run: wire.RunID{5}, Peers: []string{"/ip4/127.0.0.1/tcp/1/p2p/12D3KooWEyoppNCUx8Yx66oV9fJnriXwCcXwDDUA2kj6vnc6iDEp"}}.String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		typedIn(ctx, []string{"join", nobody, dir, "--profile", "local", "--listen", anyPort})
	}()
	defer func() { cancel(); <-ended }()
	for {
		if _, err := status.Dial(dir); err == nil {
			break
		}
		select {
		case <-ended:
			t.Fatal("the node ended before it could be asked")
		case <-time.After(10 * time.Millisecond):
		}
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"status", dir}, exitFailed, "the node is starting"},
		{[]string{"set", dir, "--up", "2mbit"}, exitDone, "note: the node still starts"},
		{[]string{"set", dir, "--quota", "1GB/day"}, exitDone, "set: quota 1GB/day"},
		{[]string{"set", dir}, exitDone, "up          2mbit"},
		{[]string{"set", dir}, exitDone, "1GB/day"},
		{[]string{"join", dir}, exitUsage, "holds no run yet"},
		{[]string{"join", nobody, dir, "--down", "1mbit"}, exitFailed, "a node runs there already"},
		{[]string{"leave", dir}, exitDone, "left"},
	} {
		if code, stdout, stderr := typed(t, c.args...); code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%v: exit code %d, %s%s; want %q", c.args, code, stdout, stderr, c.says)
		}
	}
	<-ended
}

// A value that was not typed is refused with where it comes from.
func TestBadValueSaysWhence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "my.toml")
	if err := os.WriteFile(file, []byte("[join]\nhours = '25-26'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := typed(t, "join", "--config", file, t.TempDir()); code != exitUsage || !strings.Contains(stderr, "it comes from the file of --config") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	t.Setenv("ATOLL_JOIN_UP", "5")
	if code, _, stderr := typed(t, "join", t.TempDir()); code != exitUsage || !strings.Contains(stderr, "it comes from the environment: ATOLL_JOIN_UP=5") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if code, _, stderr := typed(t, "join", t.TempDir(), "--up", "6"); code != exitUsage || strings.Contains(stderr, "environment") || !strings.Contains(stderr, "--reset up") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// The doctor finds what would refuse the next start.
func TestDoctorReadsWhatStays(t *testing.T) {
	dir := filepath.Dir(newRun(t, someText(t)))
	if _, _, err := (store.Disk{}).LoadKey(dir); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{store.SettingsFile: "quotta = '1GB/day'\n", node.InviteFile: "half of one"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last := status.Snapshot{Alarms: []status.Alarm{{Kind: status.AlarmThin, Text: "the links are too thin", Remedy: "a larger batch"}, {Kind: status.AlarmSilent, Text: "1 of 2"}}}
	b, err := json.Marshal(last)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, status.FinalFile), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := typed(t, "doctor", dir)
	for _, part := range []string{`"quotta" is no setting; did you mean "quota"?`, node.InviteFile + " is damaged", "the links are too thin", "things need attention"} {
		if code != exitFailed || !strings.Contains(stdout, part) {
			t.Errorf("exit code %d, no %q in %s%s", code, part, stdout, stderr)
		}
	}
}

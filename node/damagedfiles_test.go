package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/node/status"
	"atoll/node/store"
)

// ways to damage a file.
var damages = []struct {
	name string
	do   func(path string, b []byte) error
}{
	{"flipped", func(path string, b []byte) error { b[len(b)/2] ^= 8; return os.WriteFile(path, b, 0o600) }},
	{"cut", func(path string, b []byte) error { return os.WriteFile(path, b[:len(b)/2], 0o600) }},
	{"empty", func(path string, b []byte) error { return os.WriteFile(path, nil, 0o600) }},
	{"gone", func(path string, b []byte) error { return os.Remove(path) }},
}

// Whatever file of its folder is damaged, a node goes on from it, or says which
// file it is and what to do. ATOLL_LONG=1 damages each file in all ways, else each in one.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	text, folder := toyText(t), t.TempDir()
	m := launch(t, Config{Dir: folder, Genesis: toyGenesis(1 << 40).Encode(), Data: text, Pace: slowPace})
	m.until("a few rounds closed", func(s status.Snapshot) bool { return s.Fragments[0].Closed > 9 && s.Fragments[1].Closed > 9 })
	before := m.leave()
	for i, file := range []struct {
		pattern string
		refused []string // what an error may say; none: the node goes on
	}{
		{"key", []string{"restore it from a backup", "goes on"}},
		{"genesis", []string{"start once with the join link", "pass a link with an address", "its genesis file is damaged"}},
		{"index.db", []string{"atoll doctor ", "goes on"}}, // free pages do not matter
		{"checkpoint", nil},
		{"steps.log", nil},
		{"status.json", nil},
		{"deltas/*/*/*", nil},
		{"bases/0-*", nil},
	} {
		for j, damage := range damages {
			if !long && j != i%len(damages) {
				continue
			}
			t.Run(file.pattern+" "+damage.name, func(t *testing.T) {
				t.Parallel()
				cfg := Config{Dir: copyOf(t, folder), Data: text, Pace: slowPace}
				spoil(t, filepath.Join(cfg.Dir, file.pattern), damage.do)
				said := startsOn(t, cfg, before)
				for _, want := range append(file.refused, "goes on")[:max(1, len(file.refused))] {
					if strings.Contains(said, want) {
						return
					}
				}
				t.Errorf("%s", said)
			})
		}
	}
}

// startsOn starts a node and says how that went: with its error, or that it goes
// on.
func startsOn(t *testing.T, cfg Config, before status.Snapshot) string {
	t.Helper()
	m := launch(t, cfg)
	for {
		select {
		case <-m.ended:
			return m.err.Error()
		case <-m.news.Ready():
		}
		for _, s := range m.news.Take() {
			if s.Step > before.Step || s.TokensFolded > before.TokensFolded {
				end := m.leave()
				if end.TokensFolded < before.TokensFolded {
					return "less is folded than was"
				}
				return "goes on"
			}
		}
	}
}

// spoil damages the last file that fits a pattern.
func spoil(t *testing.T, pattern string, damage func(path string, b []byte) error) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", pattern, paths, err)
	}
	path := paths[len(paths)-1]
	b, err := os.ReadFile(path)
	if err == nil {
		err = damage(path, b)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// copyOf copies a folder.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "node")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"key"} { // CopyFS opens what it copies to others
		if err := os.Chmod(filepath.Join(to, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// After `atoll doctor --fix` a node takes its run from its peers again, with the
// key that it had.
func TestRejoinAfterSettingAside(t *testing.T) {
	t.Parallel()
	const budget = 20_000
	text := toyText(t)
	peer := launch(t, Config{Genesis: toyGenesis(budget).Encode(), Data: text, Pace: slowPace, Stay: true})
	cfg := Config{Dir: t.TempDir(), Link: peer.link(), Data: text, Pace: slowPace}
	m := launch(t, cfg)
	m.until("it contributes", contributes)
	before := m.leave()
	if err := os.Truncate(filepath.Join(cfg.Dir, "index.db"), 4096); err != nil {
		t.Fatal(err)
	}
	if err := fails(t, cfg); !errors.Is(err, store.ErrIndex) || !strings.Contains(err.Error(), "index.db") {
		t.Fatal(err)
	}
	if _, err := store.SetAside(cfg.Dir, before.At); err != nil {
		t.Fatal(err)
	}
	m = launch(t, cfg)
	s := m.until("it contributes again", contributes)
	if s.Self != before.Self {
		t.Error("the node has another key")
	}
	end := m.end()
	all := peer.until("the end", finished)
	if end.StateDigest != all.StateDigest || end.ChainDigest != all.ChainDigest {
		t.Errorf("ends with %.8s %.8s, the peer with %.8s %.8s", end.ChainDigest, end.StateDigest, all.ChainDigest, all.StateDigest)
	}
	peer.leave()
	checkHonest(t, peer.cfg.Dir)
}

package top

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"atoll/node/status"
)

// terminal is where a program draws in tests.
type terminal struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.Write(b)
}

func (t *terminal) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.String()
}

// Sequences with which a terminal goes to its other screen and back.
const (
	enterScreen = "\x1b[?1049h"
	leaveScreen = "\x1b[?1049l"
)

// serving is a folder on which a node answers until stop.
func serving(t *testing.T, name string, snapshot func() status.Snapshot) (dir string, stop func()) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := status.Serve(dir, status.Handlers{Snapshot: func() (status.Snapshot, bool) { return snapshot(), true }})
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	stop = func() {
		once.Do(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return dir, stop
}

func sourceOf(dirs ...string) *Source { return NewSource(func() []string { return dirs }) }

// q quits, Ctrl-C quits, and so does a context that ends; the terminal is as before.
func TestQuits(t *testing.T) {
	dir, _ := serving(t, "node0", func() status.Snapshot { return nodeOf(0, 4, 20).Status })
	for name, keys := range map[string]string{"q": "q", "Ctrl-C": "\x03"} {
		var out terminal
		nodes, err := Run(t.Context(), Config{Source: sourceOf(dir), In: strings.NewReader(keys), Out: &out})
		if err != nil || Ended(nodes) {
			t.Errorf("%s: %v", name, err)
		}
		if s := out.String(); strings.Count(s, enterScreen) != strings.Count(s, leaveScreen) {
			t.Errorf("%s: the terminal is left on the other screen: %q", name, s)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Config{Source: sourceOf(dir), In: noKeys(t), Out: &terminal{}}); err != nil {
		t.Errorf("a context that ends: %v", err)
	}
}

// A node that starts has no status yet and is waited for; one that never gets so far ends the screen.
func TestWaitsForANodeThatStarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "node0")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var ready atomic.Bool
	s, err := status.Serve(dir, status.Handlers{Snapshot: func() (status.Snapshot, bool) { return nodeOf(0, 4, 20).Status, ready.Load() }})
	if err != nil {
		t.Fatal(err)
	}
	source := sourceOf(dir)
	if nodes := source.Poll(t.Context()); len(nodes) > 0 || source.Idle() {
		t.Errorf("while it starts: %d nodes, idle %v", len(nodes), source.Idle())
	}
	ready.Store(true)
	if nodes := source.Poll(t.Context()); len(nodes) != 1 || source.Idle() {
		t.Errorf("when it runs: %d nodes, idle %v", len(nodes), source.Idle())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fresh := sourceOf(dir)
	if nodes := fresh.Poll(t.Context()); len(nodes) > 0 || !fresh.Idle() {
		t.Errorf("when it is gone: %d nodes, idle %v", len(nodes), fresh.Idle())
	}
	m := &model{ctx: t.Context(), source: fresh}
	for i := range missesToEnd {
		_, cmd := m.Update(polled{at: start, idle: true})
		if quits := i == missesToEnd-1; (cmd != nil && m.idle >= missesToEnd) != quits {
			t.Errorf("poll %d without a node", i)
		}
	}
}

// noKeys is a keyboard that nobody touches.
func noKeys(t *testing.T) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { w.Close() })
	return r
}

// The screen ends by itself when the node has ended, and gives back what was last known.
func TestEndsWithTheNode(t *testing.T) {
	dir, stop := serving(t, "node0", func() status.Snapshot { return nodeOf(0, 4, 20).Status })
	source := sourceOf(dir)
	if nodes := source.Poll(t.Context()); len(nodes) != 1 || ended(nodes) {
		t.Fatalf("%+v", nodes)
	}
	stop()
	for range missesToEnd - 2 {
		if nodes := source.Poll(t.Context()); ended(nodes) {
			t.Fatal("ended at the first miss")
		}
	}
	source.Poll(t.Context())
	var out terminal
	nodes, err := Run(t.Context(), Config{Source: source, In: noKeys(t), Out: &out})
	if err != nil || !Ended(nodes) || nodes[0].Status.Name != "opticks" {
		t.Errorf("%+v, %v", nodes, err)
	}
}

// A panic in the drawing leaves the terminal as it was.
func TestPanicRestoresTheTerminal(t *testing.T) {
	var out terminal
	m := &model{ctx: t.Context(), source: NewSource(func() []string { return nil })}
	p := tea.NewProgram(breaking{m}, tea.WithInput(noKeys(t)), tea.WithOutput(&out), tea.WithoutSignalHandler(), tea.WithWindowSize(80, 24))
	_, err := p.Run()
	if !errors.Is(err, tea.ErrProgramPanic) {
		t.Errorf("%v", err)
	}
	if s := out.String(); !strings.Contains(s, enterScreen) || strings.LastIndex(s, leaveScreen) < strings.LastIndex(s, enterScreen) {
		t.Errorf("the terminal is left on the other screen: %q", s)
	}
}

// breaking draws once and then panics.
type breaking struct{ *model }

func (b breaking) Init() tea.Cmd {
	return tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return errors.New("now") })
}

func (b breaking) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if err, now := msg.(error); now {
		panic(err)
	}
	return b, nil
}

func TestKeys(t *testing.T) {
	m := &model{history: *scenes["forty"]()}
	for _, c := range []struct {
		key   string
		first int
	}{{"up", 0}, {"down", 1}, {"j", 2}, {"k", 1}, {"pgdown", 11}, {"pgup", 1}, {"end", 39}, {"down", 39}, {"home", 0}, {"x", 0}} {
		if m.key(c.key) != nil || m.screen.First != c.first {
			t.Errorf("%s: first is %d, want %d", c.key, m.screen.First, c.first)
		}
	}
	m.Update(tea.WindowSizeMsg{Width: 100, Height: 30})
	if m.screen.Width != 100 || m.screen.Height != 30 || !m.View().AltScreen {
		t.Errorf("%+v", m.screen)
	}
}

// Nodes of one run are shown, those of another are not; what they say is made harmless.
func TestSource(t *testing.T) {
	first, _ := serving(t, "node0", func() status.Snapshot { s := nodeOf(0, 2, 20).Status; s.Name = "\x1b[2J"; return s })
	second, _ := serving(t, "node1", func() status.Snapshot { return nodeOf(1, 2, 20).Status })
	other, _ := serving(t, "other", func() status.Snapshot { s := nodeOf(2, 2, 20).Status; s.Run = id(98); return s })
	nodes := sourceOf(first, filepath.Join(t.TempDir(), "absent"), second, other).Poll(t.Context())
	if len(nodes) != 2 || nodes[0].Name != "node0" || nodes[1].Name != "node1" || strings.Contains(nodes[0].Status.Name, "\x1b") {
		t.Errorf("%+v", nodes)
	}
}

func TestFolders(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"node0", "node1", "log"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	isNode := func(dir string) bool { return strings.HasPrefix(filepath.Base(dir), "node") }
	if got := Folders(root, isNode); len(got) != 2 || got[0] != filepath.Join(root, "node0") {
		t.Errorf("%v", got)
	}
	if got := Folders(filepath.Join(root, "node1"), isNode); len(got) != 1 {
		t.Errorf("%v", got)
	}
	if got := Folders(filepath.Join(root, "absent"), isNode); got != nil {
		t.Errorf("%v", got)
	}
}

package status

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// text is tips of a sort.
type text string

func (t text) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, string(t))
	return int64(n), err
}

// snapshot is a status with something in its corners.
func snapshot() Snapshot {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return Snapshot{
		Identity:  Identity{Version: "atoll/0.1", Run: "ab", Self: "cd", State: "training", Started: at, At: at.Add(time.Minute)},
		Progress:  Progress{TokensFolded: 1 << 60},
		Fragments: []Fragment{{Closed: 3, Tokens: 7}},
		Peers:     []Peer{{ID: "cd", Self: true, Share: 0.25}},
		Account:   Account{OwnFolded: []uint64{1, 2}},
		Time:      TimeAccount{Step: 1.5, Total: 2},
		Rejoined:  true,
		Events:    []Event{{At: at, Kind: "joined", Text: "hello"}},
	}
}

// serve starts a control API that is ready.
func serve(t *testing.T, dir string) (*Server, chan struct{}) {
	t.Helper()
	s, left, _ := serveAll(t, dir)
	return s, left
}

// serveAll does so, with what Pause was told.
func serveAll(t *testing.T, dir string) (*Server, chan struct{}, chan bool) {
	t.Helper()
	left, paused := make(chan struct{}, 1), make(chan bool, 2)
	s, err := Serve(dir, Handlers{
		Snapshot: func() (Snapshot, bool) { return snapshot(), true },
		Tips:     func() (io.WriterTo, bool) { return text("tips"), true },
		Leave:    func() { left <- struct{}{} },
		Pause:    func(on bool) { paused <- on },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, left, paused
}

func dial(t *testing.T, dir string) *Client {
	t.Helper()
	c, err := Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestControlRoundTrip(t *testing.T) {
	dir := t.TempDir()
	s, left := serve(t, dir)
	c := dial(t, dir)
	got, err := c.Snapshot(t.Context())
	if err != nil || !reflect.DeepEqual(got, snapshot()) {
		t.Errorf("snapshot %+v, %v", got, err)
	}
	if b, err := c.Tips(t.Context()); err != nil || string(b) != "tips" {
		t.Errorf("tips %q, %v", b, err)
	}
	if err := c.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	<-left
	if info, err := os.Stat(s.way.address); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v, %v: want rights of the owner only", info, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("left in the folder: %v, %v", names, err)
	}
	if _, err := c.Snapshot(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after Close: %v", err)
	}
}

func TestControlPauses(t *testing.T) {
	dir := t.TempDir()
	s, _, paused := serveAll(t, dir)
	defer s.Close()
	for _, on := range []bool{true, false} {
		if err := dial(t, dir).Pause(t.Context(), on); err != nil {
			t.Fatal(err)
		}
		if got := <-paused; got != on {
			t.Errorf("asked for a pause %v, the node is told %v", on, got)
		}
	}
}

func TestControlNotRunning(t *testing.T) {
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent")} {
		if _, err := Dial(dir); !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), dir) {
			t.Errorf("Dial: %v", err)
		}
	}
}

// Nobody knows that no node runs in a folder that this user may not read.
func TestControlOfAnotherUser(t *testing.T) {
	err := noWay("folder", &fs.PathError{Op: "open", Path: "folder/control", Err: fs.ErrPermission})
	if errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "run this as the user that started the node") {
		t.Error(err)
	}
}

// What a node writes down is read whole or not at all: a client that keeps the path
// of half a socket never finds the node.
func TestControlIsReadWhole(t *testing.T) {
	for _, part := range []string{"", filepath.Join(t.TempDir(), "con")} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, controlFile), []byte(part), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Dial(dir); !errors.Is(err, ErrNotRunning) {
			t.Errorf("of a file with %q: %v", part, err)
		}
	}
}

func TestControlNotReady(t *testing.T) {
	dir := t.TempDir()
	s, err := Serve(dir, Handlers{
		Snapshot: func() (Snapshot, bool) { return Snapshot{}, false },
		Tips:     func() (io.WriterTo, bool) { return nil, false },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := dial(t, dir)
	if _, err := c.Snapshot(t.Context()); err == nil || !strings.Contains(err.Error(), "the node is starting") || errors.Is(err, ErrNotRunning) {
		t.Errorf("snapshot: %v", err)
	}
	if _, err := c.Tips(t.Context()); err == nil || !strings.Contains(err.Error(), "the node is starting") {
		t.Errorf("tips: %v", err)
	}
}

// kill leaves a socket that nobody listens at, as a killed node does.
func kill(t *testing.T, s *Server) {
	t.Helper()
	if err := s.http.Close(); err != nil {
		t.Fatal(err)
	}
	<-s.done
	l, err := net.Listen("unix", s.way.address)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestControlAfterKill(t *testing.T) {
	dir := t.TempDir()
	s, _ := serve(t, dir)
	kill(t, s)
	c := dial(t, dir)
	if _, err := c.Snapshot(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("killed: %v", err)
	}
	s, _ = serve(t, dir)
	if _, err := dial(t, dir).Snapshot(t.Context()); err != nil {
		t.Errorf("started again: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestControlLongPath(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, _ := serve(t, dir)
	kill(t, s)
	s, _ = serve(t, dir)
	if _, err := dial(t, dir).Snapshot(t.Context()); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(temp); err != nil || len(names) != 1 {
		t.Errorf("%d folders for sockets, %v: the killed node's is to be removed", len(names), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(temp); err != nil || len(names) != 0 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

func TestControlCanceled(t *testing.T) {
	dir := t.TempDir()
	s, _ := serve(t, dir)
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dial(t, dir).Snapshot(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrNotRunning) {
		t.Errorf("error %v", err)
	}
}

// A control file that names something else than a socket of ours does not make
// us remove it.
func TestControlRemovesOnlySockets(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(t.TempDir(), "precious")
	for _, f := range []struct{ path, text string }{{precious, "text"}, {filepath.Join(dir, controlFile), precious + "\n"}} {
		if err := os.WriteFile(f.path, []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := serve(t, dir)
	defer s.Close()
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

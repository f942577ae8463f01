package status

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// At a port of this machine a node answers those alone who read the token in its folder.
func TestControlPort(t *testing.T) {
	dir := t.TempDir()
	left := make(chan struct{}, 1)
	s, err := serveAt("tcp", dir, controlFile, mux(Handlers{
		Snapshot: func() (Snapshot, bool) { return snapshot(), true },
		Leave:    func() { left <- struct{}{} },
	}))
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, dir)
	if got, err := c.Snapshot(t.Context()); err != nil || got.Run != snapshot().Run {
		t.Errorf("%+v, %v", got, err)
	}
	for _, said := range []string{"", "Bearer ", "Bearer " + strings.ToLower(s.way.token), s.way.token} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.way.address+"/leave", nil)
		if err != nil {
			t.Fatal(err)
		}
		if said != "" {
			req.Header.Set("Authorization", said)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden || len(left) > 0 {
			t.Errorf("%q was let in: %s", said, res.Status)
		}
	}
	if err := c.Leave(t.Context()); err != nil || len(left) != 1 {
		t.Errorf("leave: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

// A node that was killed left the file of a port: the next one starts in its place.
func TestControlPortAfterKill(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, controlFile), []byte("tcp 127.0.0.1:1 TOKEN\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := dial(t, dir)
	if _, err := c.Snapshot(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("killed: %v", err)
	}
	s, err := serveAt("tcp", dir, controlFile, mux(Handlers{Snapshot: func() (Snapshot, bool) { return snapshot(), true }}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Snapshot(t.Context()); err != nil {
		t.Errorf("the client of before: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestWaysAreRead(t *testing.T) {
	for text, want := range map[string]way{
		"/run/control.sock\n":      {network: "unix", address: "/run/control.sock"},
		"/a folder/control.sock\n": {network: "unix", address: "/a folder/control.sock"},
		"tcp 127.0.0.1:9 SECRET\n": {"tcp", "127.0.0.1:9", "SECRET"},
	} {
		got, ok := parseWay(text)
		if !ok || got != want {
			t.Errorf("%q: %+v, %v", text, got, ok)
		}
		if again, ok := parseWay(got.text()); !ok || again != got {
			t.Errorf("%q came back as %+v", text, again)
		}
		if _, ok := parseWay(strings.TrimSuffix(text, "\n")); ok {
			t.Errorf("%q was read without its end", text)
		}
	}
}

package controls

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/gossip/wire"
	"atoll/node/status"
	"atoll/testnet/shaping"
)

// serve offers controls on a folder that has a control socket too.
func serve(t *testing.T, c Controls) Client {
	t.Helper()
	dir := t.TempDir()
	own, err := status.Serve(dir, status.Handlers{Snapshot: func() (status.Snapshot, bool) { return status.Snapshot{Identity: status.Identity{Self: "own"}}, true }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Serve(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), own.Close()); err != nil {
			t.Error(err)
		}
	})
	asked, err := status.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := asked.Snapshot(t.Context()); err != nil || s.Self != "own" {
		t.Errorf("at the control socket: %q, %v", s.Self, err)
	}
	return Client{dir}
}

func TestControls(t *testing.T) {
	var done []string
	note := func(text string, args ...any) error {
		done = append(done, fmt.Sprintf(text, args...))
		return nil
	}
	c := serve(t, Controls{
		Block:   func(peers []wire.PeerID) error { return note("block %d", peers) },
		Pace:    func(d time.Duration) error { return note("pace %v", d) },
		Uphill:  func(on bool) error { return note("uphill %v", on) },
		Corrupt: func(at BitFlip) error { return note("corrupt %+v", at) },
		Link:    func(l shaping.Link) error { return note("link %v", l) },
	})
	ctx := t.Context()
	for _, err := range []error{
		c.Block(ctx, make([]wire.PeerID, 1)), c.Block(ctx, nil), c.Pace(ctx, 1500*time.Millisecond), c.Uphill(ctx, true),
		c.Corrupt(ctx, BitFlip{Fragment: 2, Value: 7, Bit: 22}), c.Link(ctx, shaping.Link{Up: 125_000, Loss: 0.01}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{fmt.Sprintf("block %d", make([]wire.PeerID, 1)), "block []", "pace 1.5s", "uphill true", "corrupt {Fragment:2 Value:7 Bit:22}", "link up=1mbit,loss=1%"}
	if !slices.Equal(done, want) {
		t.Errorf("%q, want %q", done, want)
	}
}

// What fails, is not there or is too large comes back as an error, and so does a process that is gone.
func TestControlsRefuse(t *testing.T) {
	c := serve(t, Controls{Corrupt: func(BitFlip) error { return errors.New("fragment 9: there are 8") }, Block: func([]wire.PeerID) error { return nil }})
	for want, err := range map[string]error{
		"there are 8":              c.Corrupt(t.Context(), BitFlip{Fragment: 9}),
		"no such control: /uphill": c.Uphill(t.Context(), true),
		"too large":                c.Block(t.Context(), make([]wire.PeerID, maxBody/64)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := (Client{t.TempDir()}).Pace(t.Context(), 0); !errors.Is(err, status.ErrNotRunning) {
		t.Errorf("error %v", err)
	}
}

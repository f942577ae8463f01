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

// A process obeys beside its control socket. What fails or is too large comes back as an error, and so does
// a process that is gone.
func TestControls(t *testing.T) {
	dir, done := t.TempDir(), []string{}
	obey := func(o Orders) error { done = append(done, fmt.Sprint(o)); return nil }
	corrupt := func(at BitFlip) error {
		done = append(done, fmt.Sprint(at))
		return errors.New("fragment 2: there are 2")
	}
	own, err := status.Serve(dir, status.Handlers{Snapshot: func() (status.Snapshot, bool) { return status.Snapshot{Identity: status.Identity{Self: "own"}}, true }})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	s, err := Serve(dir, obey, corrupt)
	if err != nil {
		t.Fatal(err)
	}
	if asked, err := status.Dial(dir); err != nil {
		t.Error(err)
	} else if s, err := asked.Snapshot(t.Context()); err != nil || s.Self != "own" {
		t.Errorf("at the control socket: %q, %v", s.Self, err)
	}
	ctx := t.Context()
	orders := Orders{1500 * time.Millisecond, []wire.PeerID{{1}, {2}}, shaping.Link{Up: 125_000, Loss: 0.01}, true}
	for want, err := range map[string]error{
		"there are 2": Corrupt(ctx, dir, BitFlip{2, 7, 22}),
		"too large":   Order(ctx, dir, Orders{Block: make([]wire.PeerID, maxBody/64)}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := errors.Join(Order(ctx, dir, orders), Order(ctx, dir, Orders{}), s.Close()); err != nil {
		t.Error(err)
	}
	if want := []string{fmt.Sprint(BitFlip{2, 7, 22}), fmt.Sprint(orders), fmt.Sprint(Orders{})}; !slices.Equal(done, want) {
		t.Errorf("%q, want %q", done, want)
	}
	if err := Order(ctx, dir, orders); !errors.Is(err, status.ErrNotRunning) {
		t.Errorf("error %v", err)
	}
}

package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// serveLab starts the control API of a node with this laboratory.
func serveLab(t *testing.T, l *Lab) *Client {
	t.Helper()
	dir := t.TempDir()
	s, err := Serve(dir, Handlers{Lab: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return dial(t, dir)
}

func TestLabControls(t *testing.T) {
	var done []string
	note := func(text string, args ...any) error {
		done = append(done, fmt.Sprintf(text, args...))
		return nil
	}
	c := serveLab(t, &Lab{
		Block:   func(peers []string) error { return note("block %v", peers) },
		Pace:    func(d time.Duration) error { return note("pace %v", d) },
		Uphill:  func(on bool) error { return note("uphill %v", on) },
		Corrupt: func(at BitFlip) error { return note("corrupt %+v", at) },
	})
	for _, err := range []error{
		c.Block(t.Context(), []string{"ab", "cd"}), c.Block(t.Context(), nil),
		c.Pace(t.Context(), 1500*time.Millisecond), c.Uphill(t.Context(), true), c.Corrupt(t.Context(), BitFlip{Fragment: 2, Value: 7, Bit: 22}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"block [ab cd]", "block []", "pace 1.5s", "uphill true", "corrupt {Fragment:2 Value:7 Bit:22}"}
	if !slices.Equal(done, want) {
		t.Errorf("%q, want %q", done, want)
	}
}

func TestLabControlThatFails(t *testing.T) {
	c := serveLab(t, &Lab{Corrupt: func(BitFlip) error { return errors.New("fragment 9: there are 8") }})
	if err := c.Corrupt(t.Context(), BitFlip{Fragment: 9}); err == nil || !strings.Contains(err.Error(), "there are 8") {
		t.Errorf("error %v", err)
	}
}

func TestWithoutLabControlsAreRefused(t *testing.T) {
	c := serveLab(t, nil)
	for name, err := range map[string]error{
		"block": c.Block(t.Context(), nil), "pace": c.Pace(t.Context(), 0), "corrupt": c.Corrupt(t.Context(), BitFlip{}),
	} {
		if err == nil || !strings.Contains(err.Error(), "not started with --lab") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestLabRequestsAreBounded(t *testing.T) {
	c := serveLab(t, &Lab{Block: func([]string) error { return nil }})
	if err := c.Block(t.Context(), []string{strings.Repeat("a", maxLabBody)}); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("error %v", err)
	}
}

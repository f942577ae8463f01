package program

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestOutput(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	var log bytes.Buffer
	out, err := Output(t.Context(), &log, []string{"WORD=7"}, "sh", "-c", `echo "out $WORD"; echo one >&2; echo two >&2; exit 3`)
	if string(out) != "out 7\n" || err == nil || !strings.HasSuffix(err.Error(), "exit status 3: two") || log.String() != "one\ntwo\n" {
		t.Errorf("%q, %v, log %q", out, err, log.String())
	}
	if out, err := Output(t.Context(), &log, nil, "sh", "-c", "echo well"); string(out) != "well\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Output(ctx, &log, nil, "sh", "-c", "sleep 60"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "a\nb\n\n": "b", " a \n": "a", "a\n\nb": "b"} {
		if got := string(LastLine([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

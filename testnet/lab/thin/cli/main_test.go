package cli

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"": "say what to do", "walk": `there is no "walk"`, "run --walk": "flag provided but not defined", "run now": `run takes no "now"`,
		"run --runs 0": "--runs is 0", "run --scale NaN": "--scale NaN",
	} {
		err := Main(t.Context(), strings.Fields(line), new(bytes.Buffer), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, errUsage) {
			t.Errorf("%q: error %v, want %q", line, err, want)
		}
	}
	for _, line := range []string{"run --help", "--help", "help"} {
		if err := Main(t.Context(), strings.Fields(line), new(bytes.Buffer), io.Discard); !errors.Is(err, flag.ErrHelp) || errors.Is(err, errUsage) {
			t.Errorf("%q: error %v", line, err)
		}
	}
}

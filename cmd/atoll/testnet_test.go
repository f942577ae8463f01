package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"atoll/cmd/atoll/internal/cli"
	"atoll/testnet"
)

// --learner-list is one list by node, which also says how many there are; --learner wins.
func TestLearnersOfATestnet(t *testing.T) {
	for line, want := range map[string][]string{
		"testnet":                              {"4"},
		"testnet --learner-list go,torchrun:2": {"2", "0:go", "1:torchrun:2"},
		"testnet --nodes 5 --learner-list torch --learner 3:jax --learner 0:a,b": {"5", "0:torch", "3:jax", "0:a,b"},
		"testnet --nodes 0 --learner-list go":                                    {"0", "0:go"},
	} {
		var parsed commandLine
		parser, err := kong.New(&parsed)
		if err == nil {
			_, err = parser.Parse(strings.Fields(line))
		}
		if got := append([]string{strconv.Itoa(parsed.Testnet.nodes())}, parsed.Testnet.learner()...); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q (%v), want %q", line, got, err, want)
		}
	}
}

func TestFailedChecksAreTold(t *testing.T) {
	var errs strings.Builder
	c := &cli.Console{Err: &errs}
	sayFailed(c, []testnet.Check{{Name: "one chain", Passed: true}, {Name: "one digest", Detail: "they differ"}})
	if want := "atoll: check failed: one digest: they differ\n"; errs.String() != want {
		t.Errorf("%q, want %q", errs.String(), want)
	}
}

package main

import (
	"strings"
	"testing"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/inspect"
	"atoll/node/status"
)

// What does not count has a column of its own, which is not shown where all counts.
func TestLedgerShowsGuests(t *testing.T) {
	authors := []inspect.LedgerAuthor{{Author: "cdcdcdcdcdcd", Self: true, Deltas: 4, Tokens: 400, Share: 1}, {Author: "efefefefefef", Deltas: 3}}
	text := func() string {
		var b strings.Builder
		if err := cli.Table(&b, authorRows(authors, status.Labels{"efefefefef": "lab"})...); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := text(); strings.Contains(got, "GUEST") {
		t.Errorf("without guests:\n%s", got)
	}
	authors[1].Beyond = 300
	got := text()
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 3 || !strings.HasSuffix(strings.TrimSpace(lines[0]), "NOT COUNTED") || !strings.HasSuffix(strings.TrimSpace(lines[2]), " 300") || !strings.Contains(lines[2], "0.0 %") {
		t.Errorf("with a guest:\n%s", got)
	}
}

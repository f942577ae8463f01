package main

import (
	"strings"
	"testing"

	"atoll/testnet"
)

func TestFailedChecksAreTold(t *testing.T) {
	var errs strings.Builder
	c := &console{err: &errs}
	c.sayFailed([]testnet.Check{{Name: "one chain", Passed: true}, {Name: "one digest", Detail: "they differ"}})
	if want := "atoll: check failed: one digest: they differ\n"; errs.String() != want {
		t.Errorf("%q, want %q", errs.String(), want)
	}
}

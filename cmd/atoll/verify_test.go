package main

import (
	"testing"

	"atoll/node/inspect"
)

func TestVerdictLine(t *testing.T) {
	whole := inspect.VerifyResult{Rounds: 9, Deltas: 20, Tokens: 1000, FromGenesis: true, From: []uint32{0, 0}}
	for _, c := range []struct{ got, want string }{
		{verdictLine(whole), "ok: 9 rounds with 20 deltas, 1000 tokens folded, replayed from genesis; chain 0000000000, state 0000000000"},
		{startText(inspect.VerifyResult{From: []uint32{4, 4}}), "the kept state of round 4"},
		{startText(inspect.VerifyResult{From: []uint32{4, 0, 6}}), "kept states of rounds 0 to 6"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

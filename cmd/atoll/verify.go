package main

import (
	"context"
	"fmt"
	"strings"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/inspect"
)

const verifyHelp = `
Replays the ledger of a node, which may be running, as it is now, and compares every digest: genesis and ledger determine the model. Progress goes to stderr. The replay begins at genesis, or at the oldest kept state if older payloads were deleted, and the answer says which. Exit code 0 if everything fits. If not, exit code 1, and the answer names the delta or the round.

    atoll verify first
    atoll verify testnet/node0 --json`

// VerifyCmd is `atoll verify`.
type VerifyCmd struct {
	dirArg
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*VerifyCmd) Help() string { return verifyHelp }

// verdict is the answer of `atoll verify --json`.
type verdict struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
	*inspect.VerifyResult
}

// Run replays the ledger.
func (c *VerifyCmd) Run(ctx context.Context, out *cli.Console) error {
	dir, err := c.folder(out)
	if err != nil {
		return err
	}
	result, err := inspect.Verify(replaying(ctx, out, "replaying rounds"), dir)
	if !c.JSON {
		if err == nil {
			out.Answer("%s", verdictLine(result))
			if len(result.Missing) > 0 {
				out.Answer("%s", missingText(result.Missing))
			}
		}
		return err
	}
	v := verdict{OK: err == nil}
	if err == nil {
		v.VerifyResult = &result
	} else {
		v.Error = err.Error()
	}
	if printed := out.JSON(v); printed != nil {
		return printed
	}
	return err
}

func verdictLine(r inspect.VerifyResult) string {
	return fmt.Sprintf("ok: %d rounds with %d deltas, %d tokens folded, replayed from %s; chain %v, state %v",
		r.Rounds, r.Deltas, r.Tokens, startText(r), r.Chain, r.State)
}

// mostMissing is how many gaps are named before the others are counted.
const mostMissing = 4

// missingText says which rounds could not be looked at, and what to do.
func missingText(missing []inspect.Missing) string {
	var gaps []string
	for _, m := range missing[:min(len(missing), mostMissing)] {
		gaps = append(gaps, fmt.Sprintf("fragment %d rounds %d to %d", m.Fragment, m.From, m.To))
	}
	if more := len(missing) - len(gaps); more > 0 {
		gaps = append(gaps, fmt.Sprintf("%d more gaps", more))
	}
	return "not looked at, as this folder has no record of them: " + strings.Join(gaps, ", ") +
		". They are of before the node joined, or `atoll doctor --fix` set their headers aside. The node trains without them. To look at them run `atoll verify` on a node that was there."
}

// startText says where a replay began.
func startText(r inspect.VerifyResult) string {
	if r.FromGenesis {
		return "genesis"
	}
	lo, hi := r.From[0], r.From[0]
	for _, round := range r.From {
		lo, hi = min(lo, round), max(hi, round)
	}
	if lo == hi {
		return fmt.Sprintf("the kept state of round %d", lo)
	}
	return fmt.Sprintf("kept states of rounds %d to %d", lo, hi)
}

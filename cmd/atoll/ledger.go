package main

import (
	"context"
	"fmt"
	"slices"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/inspect"
	"atoll/node/status"
)

const ledgerHelp = `
Accounts for every delta and token that the node of a folder knows: per author, per fragment, and with --deltas per delta. The node may be running. NOT COUNTED are tokens that count neither for the budget nor for the learning rate: those of a guest, and those beyond twice what others had in a round.

    atoll ledger first
    atoll ledger first --deltas
    atoll ledger first --deltas --json`

// LedgerCmd is `atoll ledger`.
type LedgerCmd struct {
	dirArg
	Deltas bool `help:"List every delta."`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*LedgerCmd) Help() string { return ledgerHelp }

// Run prints the ledger.
func (c *LedgerCmd) Run(ctx context.Context, out *cli.Console) error {
	dir, err := c.folder(out)
	if err != nil {
		return err
	}
	view, err := inspect.Ledger(dir)
	if err != nil {
		return err
	}
	if !c.Deltas {
		view.Deltas = nil
	}
	if c.JSON {
		return out.JSON(view)
	}
	return c.print(out, view, labelsOf(ctx, dir))
}

func (c *LedgerCmd) print(out *cli.Console, v inspect.LedgerView, labels status.Labels) error {
	out.Answer("run %s  %s: %s of %s tokens folded, %s trained by this node\n", status.ShortID(v.Run), v.Name,
		status.Count(v.TokensFolded), status.Count(float64(v.BudgetTokens)), status.Count(float64(v.TokensTrained)))
	if err := cli.Table(out.Out, authorRows(v.Authors, labels)...); err != nil {
		return err
	}
	out.Answer("")
	if err := cli.Table(out.Out, fragmentRows(v.Fragments)...); err != nil || !c.Deltas {
		return err
	}
	out.Answer("")
	return cli.Table(out.Out, deltaRows(v.Deltas, labels)...)
}

// authorRows has a column for what is claimed and does not count, as guests' work and claims of more than is usual, only where there is some.
func authorRows(authors []inspect.LedgerAuthor, labels status.Labels) [][]string {
	rows := [][]string{{"AUTHOR", "FOLDED", "OPEN", "TOKENS", "SHARE", "BYTES"}}
	beyond := slices.ContainsFunc(authors, func(a inspect.LedgerAuthor) bool { return a.Beyond > 0 })
	if beyond {
		rows[0] = append(rows[0], "NOT COUNTED")
	}
	for _, a := range authors {
		name := status.Printable(labels.Of(a.Author))
		if a.Self {
			name += "*"
		}
		row := []string{name, fmt.Sprint(a.Deltas), fmt.Sprint(a.Open), fmt.Sprintf("%.0f", a.Tokens), cli.Percent(a.Share, 1), status.Bytes(float64(a.Bytes))}
		if beyond {
			row = append(row, fmt.Sprintf("%.0f", a.Beyond))
		}
		rows = append(rows, row)
	}
	return rows
}

func fragmentRows(fragments []inspect.LedgerFragment) [][]string {
	rows := [][]string{{"FRAGMENT", "PARAMS", "CLOSED", "END", "TOKENS", "FOLDED", "OPEN", "UNKNOWN", "HELD FROM", "NO RECORD"}}
	for _, f := range fragments {
		end := cli.Unknown
		if f.EndRound > 0 {
			end = fmt.Sprint(f.EndRound)
		}
		rows = append(rows, []string{
			fmt.Sprint(f.Fragment), fmt.Sprint(f.Params), fmt.Sprint(f.Closed), end,
			fmt.Sprint(f.Tokens), fmt.Sprint(f.Deltas), fmt.Sprint(f.Open), fmt.Sprint(f.Unknown),
			fmt.Sprintf("round %d", f.HeldFrom), fmt.Sprint(f.Missing),
		})
	}
	return rows
}

func deltaRows(deltas []inspect.LedgerDelta, labels status.Labels) [][]string {
	rows := [][]string{{"DELTA", "FRAGMENT", "ROUND", "BASE", "AUTHOR", "STEPS", "TOKENS", "BYTES", "FOLDED"}}
	for _, d := range deltas {
		folded := "no"
		if d.Folded {
			folded = "yes"
		}
		rows = append(rows, []string{
			status.ShortID(d.ID), fmt.Sprint(d.Fragment), fmt.Sprint(d.Round), fmt.Sprint(d.Base), status.Printable(labels.Of(d.Author)),
			fmt.Sprint(d.Steps), fmt.Sprint(d.Tokens), fmt.Sprint(d.Bytes), folded,
		})
	}
	return rows
}

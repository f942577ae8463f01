package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"atoll/node/status"
)

// console is what a command talks to.
type console struct {
	out io.Writer // the answer
	err io.Writer // everything else
}

// say prints a line that is not part of the answer.
func (c *console) say(format string, args ...any) { fmt.Fprintf(c.err, format+"\n", args...) }

// json prints a value as one line of the answer.
func (c *console) json(v any) error { return json.NewEncoder(c.out).Encode(v) }

// answer prints a line of the answer.
func (c *console) answer(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }

// table prints rows of equally many cells in columns.
func table(w io.Writer, rows ...[]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

// Text for values that were not measured.
const unknown = "-"

// big writes a number with three significant digits.
func big(x float64) string { return status.Count(x) }

// percent writes a share with one digit behind the point.
func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// plural is a number of things.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

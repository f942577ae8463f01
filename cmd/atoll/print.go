package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"atoll/node/status"
)

// json prints a value as one line of the answer.
func (c *console) json(v any) error {
	if err := json.NewEncoder(c.out).Encode(v); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// answer prints a line of the answer.
func (c *console) answer(format string, args ...any) {
	fmt.Fprintf(c.out, format+"\n", args...)
}

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

// shortID is enough of an id to tell nodes apart, as every screen has it.
func shortID(hex string) string { return status.ShortID(hex) }

// big writes a number with three significant digits, as every screen does.
func big(x float64) string { return status.Count(x) }

// percent writes a share, which is unknown where the whole is zero.
func percent(part, whole float64) string {
	if whole == 0 {
		return unknown
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

// measured writes a number that is zero where it was not measured.
func measured(x float64, format string) string {
	if x == 0 {
		return unknown
	}
	return fmt.Sprintf(format, x)
}

// seconds writes a duration for people.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// plural is a number of things.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

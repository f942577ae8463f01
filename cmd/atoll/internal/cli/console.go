// Package cli is what all commands share: the console that they talk to, the refusal of a command line that cannot be
// meant, flags that mean the same everywhere, a meter for long work, and how numbers are written.
package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Console is what a command talks to.
type Console struct {
	In    io.Reader
	Out   io.Writer       // the answer
	Err   io.Writer       // everything else
	Abort <-chan struct{} // closed by the second interrupt; nil = never
	Typed []string        // the command line
}

// Say prints a line that is not part of the answer.
func (c *Console) Say(format string, args ...any) {
	fmt.Fprintf(c.Err, format+"\n", args...)
}

// Note prints a line that is not part of the answer and asks for nothing, unless it is empty.
func (c *Console) Note(text string) {
	if text != "" {
		c.Say("note: %s", text)
	}
}

// JSON prints a value as one line of the answer.
func (c *Console) JSON(v any) error {
	if err := json.NewEncoder(c.Out).Encode(v); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// Answer prints a line of the answer.
func (c *Console) Answer(format string, args ...any) {
	fmt.Fprintf(c.Out, format+"\n", args...)
}

// Table prints rows of equally many cells in columns.
func Table(w io.Writer, rows ...[]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:max(0, len(row)-1)] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			line += cell
			if i < len(row)-1 {
				line += strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+columnGap)
			}
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// columnGap is the least number of blanks between two columns.
const columnGap = 2

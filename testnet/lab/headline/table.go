package headline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// resultsFile has the table, from the top of the repository.
const resultsFile = "testnet/lab/RESULTS.md"

// The table stands between these lines.
const (
	tableBegin = "<!-- from here on: go run -C testnet/lab . headline --table --write -->"
	tableEnd   = "<!-- to here -->"
)

// Text is a result for people.
func (r Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", r.Row, r.About)
	for _, w := range r.Worlds {
		fmt.Fprintf(&b, "    %s: %s\n", w.Name, w.Text)
	}
	for _, f := range r.Failed {
		fmt.Fprintf(&b, "\nfailed: %s\n", f)
	}
	b.WriteString("\n" + tableHead)
	for _, s := range r.Lines {
		b.WriteString(s.row(""))
	}
	b.WriteString("\n" + runHead + r.run() + "\n")
	return b.String()
}

// tableHead and runHead begin the two tables: what came out, and how.
const (
	tableHead = "| what | atoll | beside it | ratio | asked |\n| --- | --- | --- | --- | --- |\n"
	runHead   = "| row | turns | machine | load before a run | least step | commit | command |\n| --- | --- | --- | --- | --- | --- | --- |\n"
)

// table is the first table of RESULTS.md.
func table(all []Result) string {
	if len(all) == 0 {
		return "No row is stored.\n"
	}
	var b strings.Builder
	b.WriteString(tableHead)
	for _, r := range all {
		for i, s := range r.Lines {
			name := ""
			if i == 0 {
				name = "**" + r.About + "**: "
			}
			b.WriteString(s.row(name))
		}
	}
	b.WriteString("\n" + runHead)
	for _, r := range all {
		b.WriteString(r.run())
	}
	for _, r := range all {
		for _, f := range r.Failed {
			fmt.Fprintf(&b, "\nFailed in row %s, %s\n", r.Row, f)
		}
	}
	return b.String()
}

// row is a line of the table.
func (s Summary) row(name string) string {
	unit := ""
	if s.Unit != "" {
		unit = ", " + s.Unit
	}
	beside := s.Of
	if s.Beside != nil {
		beside = strings.TrimSpace(s.Of + " " + number(s.Beside.Median))
	}
	return fmt.Sprintf("| %s%s%s | %s | %s | %s | %s |\n", name, s.What, unit, s.Atoll.text(), beside, s.ratio(), s.asked())
}

// ratio is what is asked about, unless it is one of the sides.
func (s Summary) ratio() string {
	if s.Atoll == nil || s.Beside == nil {
		return ""
	}
	return s.Value.text()
}

func (s Summary) asked() string {
	text := s.Asked.Text(exact)
	if s.Met != nil && !*s.Met {
		text += ": NOT MET"
	}
	return text
}

// text is the median, and least and most if they differ.
func (s *Spread) text() string {
	switch {
	case s == nil:
		return ""
	case number(s.Min) == number(s.Max):
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.Min), number(s.Max))
}

// run says how a row was played, with a line for what was played together.
func (r Result) run() string {
	command, form := "go run -C testnet/lab . headline ", ""
	if r.Quick {
		command, form = command+"--quick ", ", short form"
	}
	if r.Scale != 1 {
		command += "--scale " + number(r.Scale) + " "
	}
	if needsTorch(r.Row) {
		command += "--python PYTHON "
	}
	pace := ""
	if r.PaceMs > 0 {
		pace = number(r.PaceMs) + " ms"
	}
	var b strings.Builder
	for i, p := range append([]Part{r.Part}, r.More...) {
		if i == 1 {
			command += "--more "
		}
		m := p.Machine
		fmt.Fprintf(&b, "| %s | %d%s | %s, %d cores, %s, %s | %s | %s | %s, %s | `%s` |\n",
			r.Row, p.Turns, form, m.Processor, m.Cores, m.Kernel, m.System, number(m.Load), pace, m.Commit, p.At.Format("2006-01-02"), command+r.Row)
	}
	return b.String()
}

// showTable prints the table, or puts it into RESULTS.md, and what it means into HEADLINES.md.
func (t typed) showTable(out io.Writer) error {
	all, err := stored(t.Out)
	if err != nil {
		return err
	}
	if !t.write {
		_, err = io.WriteString(out, table(all))
		return err
	}
	text, err := os.ReadFile(resultsFile)
	if err != nil {
		return fmt.Errorf("read the results: %w; run this at the top of the repository", err)
	}
	text, err = withTable(text, table(all))
	if err != nil {
		return err
	}
	lines, err := headlines(all)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(resultsFile, text, 0o644), os.WriteFile(headlinesFile, []byte(lines), 0o644)); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// withTable replaces the table in a text.
func withTable(text []byte, table string) ([]byte, error) {
	before, rest, begins := bytes.Cut(text, []byte(tableBegin+"\n"))
	_, after, ends := bytes.Cut(rest, []byte(tableEnd+"\n"))
	if !begins || !ends {
		return nil, fmt.Errorf("%s has no place for the table: put these two lines there: %s and %s", resultsFile, tableBegin, tableEnd)
	}
	return []byte(string(before) + tableBegin + "\n\n" + table + "\n" + tableEnd + "\n" + string(after)), nil
}

package thin

import (
	"fmt"
	"strings"
)

// Text is a result for people, as a table in Markdown.
func (r Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", r.Row, r.About)
	for _, w := range r.Worlds {
		fmt.Fprintf(&b, "    %s\n", w)
	}
	for _, f := range r.Failed {
		fmt.Fprintf(&b, "\nfailed: %s\n", f)
	}
	b.WriteString("\n| what | median | least to most | turns | target | |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, s := range r.Figures {
		fmt.Fprintf(&b, "| %s | %s | %s to %s | %d | %s | %s |\n", s.Name, number(s.Median), number(s.Min), number(s.Max), s.Turns, s.Target.Text(number), s.verdict())
	}
	b.WriteString("\n")
	return b.String()
}

func (s Summary) verdict() string {
	switch {
	case s.Met == nil:
		return ""
	case *s.Met:
		return "met"
	}
	return "NOT MET"
}

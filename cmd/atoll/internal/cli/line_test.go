package cli

import (
	"strings"
	"testing"
)

// What is said stands above the line that is drawn, whole, and the line comes back below it.
func TestLineOfATerminal(t *testing.T) {
	var b strings.Builder
	columns := 12
	l := NewLine(&b, func() (int, int) { return columns, 24 })
	c := Console{Err: l.Above(&b), Out: l.Above(&b)}
	wrote := func(want string) {
		t.Helper()
		if b.String() != want {
			t.Errorf("%q, want %q", b.String(), want)
		}
		b.Reset()
	}
	c.Say("first")
	wrote("first\n")
	l.Draw("step 1")
	wrote("\r\x1b[Kstep 1")
	l.Draw("step 1") // nothing new
	wrote("")
	c.Answer("link")
	wrote("\r\x1b[Klink\nstep 1")
	l.Draw("a line that is too long")
	wrote("\r\x1b[Ka line tha…")
	columns = 0 // a terminal that does not say how wide it is
	l.Draw(strings.Repeat("x", 100))
	wrote("\r\x1b[K" + strings.Repeat("x", 78) + "…")
	l.Draw("")
	wrote("\r\x1b[K")
	c.Say("last")
	wrote("last\n")
}

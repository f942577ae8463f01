package thin

import (
	"io"
	"strings"
	"testing"
)

// What tune.Choose promises of links holds in the simulator, at the corners and in between. All cells are played by
// the command beside.
func TestCells(t *testing.T) {
	l := Usual()
	l.Shrink, l.Rounds = 20, 12
	cells := []Cell{{Nodes: 4, Mbit: 100, DelayMs: 10}, {Nodes: 4, Mbit: 20, DelayMs: 40}, {Nodes: 4, Mbit: 5, DelayMs: 150}, {Nodes: 8, Mbit: 20, DelayMs: 40}}
	played, err := l.Cells(t.Context(), cells, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range played {
		if missed := c.Missed(); len(missed) > 0 {
			t.Errorf("%s\n%s%s", strings.Join(missed, ", "), cellHead, c.row())
		}
	}
}

func TestMissed(t *testing.T) {
	fine := Cell{H: 24, Promised: 0.5, Share: 0.45, Goodput: 0.97, Late: 0.09, Over: 0.01, Planned: 24}
	if missed := fine.Missed(); missed != nil {
		t.Errorf("misses %v", missed)
	}
	for want, spoil := range map[string]func(*Cell){
		"share": func(c *Cell) { c.Share = 0.39 }, "goodput": func(c *Cell) { c.Goodput = 0.94 }, "late": func(c *Cell) { c.Late = 0.11 },
		"discarded": func(c *Cell) { c.Discarded = 1e-6 }, "budget": func(c *Cell) { c.Over = 0.011 }, "plan": func(c *Cell) { c.Planned = 25 },
	} {
		c := fine
		spoil(&c)
		if c.Fixed = true; len(c.Missed()) > 0 && (want == "share" || want == "plan") {
			t.Errorf("with an H that was asked for it misses %v", c.Missed())
		}
		c.Fixed = false
		if missed := c.Missed(); len(missed) != 1 || missed[0] != want {
			t.Errorf("misses %v, want %s", missed, want)
		}
	}
}

// The model that trains has the tensors of the one that it stands for.
func TestTaskStandsForAnother(t *testing.T) {
	small := newTask(10)
	if x := small.scale(); x < 9 || x > 11 {
		t.Errorf("a tenth is 1/%v", x)
	}
	if got, want := len(small.Specs()), len(newTask(1).Specs()); got != want {
		t.Errorf("%d tensors of %d", got, want)
	}
}

package status

import (
	"fmt"
	"strings"
)

// CutOff is the condition of a node that hears none of those it trained with.
const CutOff = "cut off"

// Condition is how a node is, in a word, and what that means for the person who looks: why, or how far it is. All screens show the
// same one.
type Condition struct{ Word, Why string }

// Condition says that a node is paused, that its disk takes nothing, or that it is cut off, before it says what it does.
func (s Snapshot) Condition() Condition {
	missed, here := 0, 0
	for _, p := range s.Peers {
		switch {
		case p.Self:
		case p.Here():
			here++
		case p.State == Gone && !p.Faded:
			missed++
		}
	}
	switch {
	case s.Own().State == Revoked:
		return Condition{Revoked, "nobody listens to it any more"}
	case s.Finished:
		return Condition{Word: "finished"}
	case s.State == "stopped":
		return Condition{"ending", s.Stage}
	case s.State == Paused:
	case s.Disk != "" && s.State == "training":
		return Condition{"disk " + s.Disk, "nothing is published until it is well; the work here is kept in memory"}
	case here == 0 && missed > 0 && s.State == "training":
		return Condition{CutOff, fmt.Sprintf("%s; the work here is kept, and merged when they are heard again", notHeard(missed))}
	}
	return Condition{s.State, s.Stage}
}

func notHeard(machines int) string {
	if machines == 1 {
		return "the other machine is not heard"
	}
	return fmt.Sprintf("none of %d machines is heard", machines)
}

// Text is a condition as a line of a screen.
func (c Condition) Text() string { return strings.TrimSuffix(c.Word+": "+c.Why, ": ") }

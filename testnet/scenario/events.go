package scenario

import (
	"errors"

	"atoll/testnet/fault"
	"atoll/testnet/sim"
)

// dated is a fault and the line that it comes from.
type dated struct {
	sim.Fault
	line int
}

// event reads what happens; package fault has the grammar.
func (c *compiler) event(r *fault.Reader) {
	e := fault.ReadEvent(r)
	if r.Err != nil {
		return
	}
	faults, err := sim.Faults(e, len(c.script.World.Founders))
	var wrong *fault.Error
	if errors.As(err, &wrong) {
		r.Fail(wrong.Word, "%s", wrong.Text)
	}
	for _, f := range faults {
		c.dated = append(c.dated, dated{f, r.Line})
	}
	if len(c.dated) > fault.MaxEvents {
		r.Fail(string(e.Verb), "this makes more than %d events", fault.MaxEvents)
	}
}

package outsider

import (
	"fmt"
	"strings"

	"atoll/testnet/lab/trials"
)

// What is asked of an attack.
var (
	asked  = trials.AtLeast(0.97) // of the calm runs' tokens/s
	nobody = trials.AtMost(0)     // of the outsider's messages, and of dials elsewhere
)

// row is an attack beside the calm runs of its turns: medians of turns, and the worst of what is counted.
type row struct {
	name            string
	trained, folded float64 // of the calm runs of the same turn
	calm, admitted  bool
	Outcome
}

// rowsOf puts trials together.
func rowsOf(attacks []attack, all []Trial) (rows []row) {
	base := map[int][]Trial{} // by turn
	for _, t := range all {
		if t.Attack == calm {
			base[t.Turn] = append(base[t.Turn], t)
		}
	}
	rows = append(rows, rowOf(calm, all, base))
	for _, a := range attacks {
		r := rowOf(a.name, all, base)
		r.admitted = a.admitted
		rows = append(rows, r)
	}
	return rows
}

// mean is the mean of a figure over some trials.
func mean(all []Trial, figure func(Trial) float64) (sum float64) {
	for _, t := range all {
		sum += figure(t) / float64(len(all))
	}
	return sum
}

// Figures of a trial of which rows have the median.
func trainedOf(t Trial) float64  { return t.Trained }
func foldedOf(t Trial) float64   { return t.Folded }
func nodesOf(t Trial) float64    { return t.NodesCPU }
func outsiderOf(t Trial) float64 { return t.OutsiderCPU }

// rowOf is the row of one name.
func rowOf(name string, all []Trial, base map[int][]Trial) row {
	r := row{name: name, calm: name == calm}
	var trained, folded []float64 // of calm
	var mine []Trial
	for _, t := range all {
		if t.Attack != name {
			continue
		}
		mine = append(mine, t)
		trained = append(trained, t.Trained/mean(base[t.Turn], trainedOf))
		folded = append(folded, t.Folded/mean(base[t.Turn], foldedOf))
		r.worst(t.Outcome)
	}
	r.trained, r.folded = trials.Median(trained), trials.Median(folded)
	for _, f := range []struct {
		into *float64
		of   func(Trial) float64
	}{{&r.Trained, trainedOf}, {&r.Folded, foldedOf}, {&r.NodesCPU, nodesOf}, {&r.OutsiderCPU, outsiderOf}} {
		var values []float64
		for _, t := range mine {
			values = append(values, f.of(t))
		}
		*f.into = trials.Median(values)
	}
	return r
}

// worst keeps of what is counted the largest.
func (r *row) worst(o Outcome) {
	r.RSSBytes, r.Files, r.Goroutines = max(r.RSSBytes, o.RSSBytes), max(r.Files, o.Files), max(r.Goroutines, o.Goroutines)
	r.LogLines, r.Dials = max(r.LogLines, o.LogLines), max(r.Dials, o.Dials)
	r.Heard.Honest, r.Heard.Strangers, r.Heard.Again = max(r.Heard.Honest, o.Heard.Honest), max(r.Heard.Strangers, o.Heard.Strangers), max(r.Heard.Again, o.Heard.Again)
	d, m := &r.Did, o.Did
	d.Sockets, d.Lines, d.Streams, d.Messages = max(d.Sockets, m.Sockets), max(d.Lines, m.Lines), max(d.Streams, m.Streams), max(d.Messages, m.Messages)
	d.Bytes, d.Refused, d.Admitted, d.Failed = max(d.Bytes, m.Bytes), max(d.Refused, m.Refused), max(d.Admitted, m.Admitted), max(d.Failed, m.Failed)
	for _, v := range o.Verdicts {
		if len(r.Verdicts) < mostVerdicts {
			r.Verdicts = append(r.Verdicts, v)
		}
	}
}

// passedOn is how much of what the outsider said nodes passed on. Messages of nodes that come again are its doing where it
// replays them: a node that stands still for long brings some late too.
func (r row) passedOn() int {
	if r.name == replays {
		return r.Heard.Strangers + r.Heard.Again
	}
	return r.Heard.Strangers
}

// missed names what is asked and not met.
func (r row) missed() (missed []string) {
	passes := nobody
	if r.admitted {
		passes = trials.Shown
	}
	for _, f := range []struct {
		name   string
		value  float64
		target trials.Target
	}{
		{"trained", r.trained, asked}, {"folded", r.folded, asked}, {"passed on", float64(r.passedOn()), passes},
		{"dials elsewhere", float64(r.Dials), nobody}, {"let in", float64(r.Did.Admitted), passes},
	} {
		if !r.calm && !f.target.Met(f.value) {
			missed = append(missed, f.name)
		}
	}
	return missed
}

const head = "| attack | trained, tokens/s | of calm | folded, tokens/s | of calm | passed on | heard | dials elsewhere | cores of nodes | cores of the outsider | " +
	"memory of a node, MB | descriptors | goroutines | log lines | missed |\n" +
	"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"

func (r row) text() string {
	return fmt.Sprintf("| %s | %.0f | %.3f | %.0f | %.3f | %d | %d | %d | %.2f | %.2f | %.0f | %d | %d | %d | %s |\n", r.name, r.Trained, r.trained, r.Folded, r.folded,
		r.passedOn(), r.Heard.Honest, r.Dials, r.NodesCPU, r.OutsiderCPU, float64(r.RSSBytes)/1e6, r.Files, r.Goroutines, r.LogLines,
		strings.Join(r.missed(), ", "))
}

// tableOf is two tables, what became of the nodes and what the outsider did, and why nodes refused it.
func tableOf(rows []row) string {
	var b strings.Builder
	b.WriteString(head)
	for _, r := range rows {
		b.WriteString(r.text())
	}
	b.WriteString("\n| attack | sockets | encrypted | streams | messages | MB | refused | let in | cut short |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		if d := r.Did; !r.calm {
			fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %.1f | %d | %d | %d |\n", r.name, d.Sockets, d.Lines, d.Streams, d.Messages, float64(d.Bytes)/1e6, d.Refused, d.Admitted, d.Failed)
		}
	}
	for _, r := range rows {
		for _, v := range r.Verdicts {
			fmt.Fprintf(&b, "\n%s is told: %s", r.name, v)
		}
	}
	b.WriteString("\n")
	return b.String()
}

package web

import (
	"fmt"
	"math"
	"time"

	"atoll/node/status"
)

// headline puts the state of the run into one plain sentence, and one more that says what
// it means.
func (b *builder) headline() {
	s := b.lead.Status
	is := s.Condition()
	groups := b.groups()
	silent := b.count(ClassSilent)
	switch {
	case s.Finished:
		b.finished(s)
	case b.lead.End != "":
		b.show(ToneRest, b.lead.End, "No node runs now.", "This is what was known last.")
	case s.State == "joining":
		b.show(ToneWait, is.Word, "This node is joining the run.", sentence(s.Stage))
	case s.State == status.Paused:
		b.show(ToneRest, is.Word, "This node is paused.", sentence(s.Stage))
	case s.Disk != "" && s.State == "training":
		b.show(ToneBad, is.Word, "The disk of this node takes nothing.", sentence(is.Why))
	case is.Word == status.CutOff:
		b.show(ToneWarn, is.Word, "This node hears no other machine.", sentence(is.Why))
	case len(groups) > 1:
		b.show(ToneWarn, "parted", fmt.Sprintf("The network is in %d parts, and each trains on.", len(groups)),
			b.groupText(groups)+". They merge what they learned when they meet again.")
	case silent > 0:
		b.show(ToneWarn, is.Word, fmt.Sprintf("%s cannot be heard. The run goes on.", plural(silent, "machine", "machines")), b.progressText(s))
	case s.State == "observing":
		b.show(ToneGood, is.Word, "This node holds and serves the model. It does not train.", b.progressText(s))
	case s.State == "stopped":
		b.show(ToneGood, is.Word, "All tokens are trained. The last deltas are being folded.", sentence(s.Stage))
	default:
		b.show(ToneGood, is.Word, b.trainingText(), b.progressText(s))
	}
	if b.grave {
		b.view.Tone = ToneBad
	}
}

func (b *builder) show(tone, state, headline, detail string) {
	b.view.Tone, b.view.State, b.view.Headline, b.view.Detail = tone, state, headline, b.labels.In(detail)
}

func (b *builder) finished(s status.Snapshot) {
	b.show(ToneGood, "finished", "The run is finished.", fmt.Sprintf("%s tokens are folded into the model.", big(float64(s.TokensFolded))))
	if s.Agreed {
		b.view.Detail += " Every live node holds the same bits."
	}
}

// trainingText says who trains what.
func (b *builder) trainingText() string {
	n := 0
	for _, p := range b.view.Peers {
		if p.Class == ClassLive {
			n++
		}
	}
	what := fmt.Sprintf("a model of %s parameters", big(float64(b.view.Run.Params)))
	if n == 1 {
		return "One machine trains " + what + "."
	}
	return fmt.Sprintf("%d machines train %s together.", n, what)
}

// progressText says how far the run is.
func (b *builder) progressText(s status.Snapshot) string {
	if s.BudgetTokens == 0 {
		return ""
	}
	text := fmt.Sprintf("%.0f %% done", math.Floor(100*min(1, float64(s.TokensFolded)/float64(s.BudgetTokens))))
	if b.view.EtaS > 0 {
		text += ", about " + duration(b.view.EtaS) + " left"
	}
	return text + "."
}

func (b *builder) count(class string) (n int) {
	for _, p := range b.view.Peers {
		if p.Class == class {
			n++
		}
	}
	return n
}

// alarmsShown bounds what is shown above everything else.
const alarmsShown = 3

// longestText bounds a text that others wrote, in characters.
const longestText = 400

// plain is a text that others wrote, as one line that steers nothing and is not endless.
func plain(text string) string { return status.Clip(status.Printable(text), longestText) }

// sentence is a text that others wrote, with a capital letter and a full stop.
func sentence(text string) string { return status.Sentence(plain(text)) }

// notes are the sentences beside the numbers of one node, and what there is to do with a model that is done.
func (b *builder) notes() {
	s := b.lead.Status
	if !b.view.Many {
		for _, row := range s.Said(b.lead.End == "") {
			b.view.Notes = append(b.view.Notes, sentence(b.labels.In(row[1])))
		}
	}
	if s.Finished {
		for _, row := range s.Next("DIR") {
			b.view.Next = append(b.view.Next, Row{row[0], row[1]})
		}
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// big writes a number of tokens or parameters with three digits.
func big(x float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}} {
		if x >= unit.size {
			return status.ThreeDigits(x/unit.size) + unit.name
		}
	}
	return fmt.Sprintf("%.0f", x)
}

// duration writes a time with two units.
func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours())/24)
}

package testnet

import (
	"fmt"
	"io"
	"strings"

	"atoll/node/status"
	"atoll/testnet/fault"
)

// WriteText writes the report for people.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	b.WriteByte('\n')
	wrapped(&b, "", fmt.Sprintf("%s, %d parameters, trained by %s with %s on %s%s", r.Model, r.Params, plural(r.Nodes, "node"), r.Optimizer, r.Data, baselineText(r.Baseline)))
	b.WriteByte('\n')
	r.writeQuality(&b)
	r.writeAccount(&b)
	r.writeChaos(&b)
	r.writeTrace(&b)
	r.writeNodes(&b)
	r.writeChecks(&b)
	r.writeFolder(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFolder says where everything is, on lines that can be copied.
func (r Report) writeFolder(b *strings.Builder) {
	fmt.Fprintf(b, "\neverything is in %s (%s)\n", r.Dir, status.Bytes(float64(r.DirBytes)))
	if r.Page != "" {
		fmt.Fprintf(b, "the report as a page: %s\n", r.Page)
	}
	if r.Temporary {
		fmt.Fprintf(b, "remove it with: rm -r %s\n", r.Dir)
	}
}

// reportWidth is how wide the report is: the narrowest usual terminal has 80
// columns, and the last one stays free.
const reportWidth = 79

// item writes a text with its label in a column of its own.
func item(b *strings.Builder, label, format string, args ...any) {
	wrapped(b, fmt.Sprintf("  %-10s ", label), fmt.Sprintf(format, args...))
}

// wrapped writes a text broken at spaces, behind its label and then below its
// own start. A word that is too long for a line is left whole: it can be copied.
func wrapped(b *strings.Builder, label, text string) {
	room := reportWidth - len([]rune(label))
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > room {
			b.WriteString(label + line + "\n")
			label, line = strings.Repeat(" ", len([]rune(label))), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	b.WriteString(strings.TrimRight(label+line, " ") + "\n")
}

func (r Report) writeQuality(b *strings.Builder) {
	if r.ValBPB != nil {
		item(b, "quality", "%.3f bits per byte of held-out text; who knows nothing needs 8", *r.ValBPB)
	}
	item(b, "speed", "%s tokens in %.0f s: %.0f tokens/s%s", count(float64(r.TokensFolded)), r.WallS, r.TokensPerS, r.goodputText())
	if r.EndIdleS != nil {
		item(b, "end", "once the budget was reached, a learner waited up to %.1f s for the run to end%s", *r.EndIdleS, r.endText())
	}
	item(b, "pace", "%.0f ms x divisor a step%s (%s)", r.Calibration.PaceMs, r.Calibration.utilisationText(), r.Calibration.Note)
	item(b, "traffic", "%s received, %.2f bytes per token%s", status.Traffic(float64(r.BytesReceived)), r.BytesPerToken, r.amplificationText())
	if r.Link != "" {
		item(b, "links", "%s", r.linkText())
	}
}

func (r Report) goodputText() string {
	if r.Goodput == nil || r.GoodputUp == nil {
		return ""
	}
	return fmt.Sprintf("; goodput %.1f %%: the part of the learners' time spent on steps that are in the model (%.1f %% without the time that their processes were down)", 100**r.Goodput, 100**r.GoodputUp)
}

func (r Report) endText() string {
	if r.EndDeltasS == nil {
		return ""
	}
	return fmt.Sprintf("; the last deltas were folded %.1f s after its last step", *r.EndDeltasS)
}

func (r Report) amplificationText() string {
	if r.Amplification == nil {
		return ""
	}
	return fmt.Sprintf("; each payload arrived %.2f times", *r.Amplification)
}

func (r Report) writeAccount(b *strings.Builder) {
	if r.Views != nil {
		item(b, "account", "%s", r.baselineAccountText())
		item(b, "steps", "%d of every member, in %s", *r.Steps, plural(int(*r.Views), "view"))
		return
	}
	item(b, "account", "%s", r.accountText())
	item(b, "rounds", "%d closed in all fragments, %d deltas folded, %d late (after their round had closed; folded anyway), %d refused", r.Rounds, r.Deltas, r.Late, r.Refused)
}

// accountText is where all tokens went.
func (r Report) accountText() string {
	text := fmt.Sprintf("%d tokens trained = %d folded + %d discarded + %d unpublished + %d lost",
		r.TokensTrained, r.TokensFolded, r.TokensDiscarded, r.TokensUnpublished, r.TokensLost)
	if r.TokensLostHere > 0 {
		text += fmt.Sprintf(" + %d lost with damaged memory, a learner that died or a long absence", r.TokensLostHere)
	}
	return text
}

func (r Report) writeChaos(b *strings.Builder) {
	var parts []string
	for _, k := range []struct {
		n    int
		text string
	}{
		{r.Joins, "joined"}, {r.Leaves, "left"}, {r.Kills, "killed"}, {r.Learners, "had their program killed"}, {r.Pauses, "paused"}, {r.Links, "given another link"},
		{r.Partitions, "partitioned"}, {r.Corruptions, "corrupted"}, {r.Liars, "lied"},
	} {
		if k.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k.n, k.text))
		}
	}
	if len(parts) == 0 {
		return
	}
	item(b, "chaos", "%s", strings.Join(parts, ", "))
	for _, k := range []struct {
		label, text string
		times       []float64
	}{
		{"joining", "from start to first folded delta", r.JoinS},
		{"restarting", "from restart to first folded delta", r.RecoverS},
		{"waking", "from the end of a pause to the next folded delta", r.WakeS},
		{"merging", "from the end of a partition to one chain", r.MergeS},
	} {
		if len(k.times) > 0 {
			item(b, k.label, "%s s %s", inSeconds(k.times), k.text)
		}
	}
	r.writeDiscarded(b)
}

// writeDiscarded says whose work a lost chain took with it.
func (r Report) writeDiscarded(b *strings.Builder) {
	if r.TokensDiscarded == 0 {
		return
	}
	var parts []string
	for _, n := range r.NodesReport {
		if n.TokensDiscarded > 0 {
			parts = append(parts, fmt.Sprintf("%s %s tokens", n.Name, count(float64(n.TokensDiscarded))))
		}
	}
	if len(parts) > 0 {
		item(b, "discarded", "%s", strings.Join(parts, ", "))
	}
}

func (r Report) writeNodes(b *strings.Builder) {
	const format = "  %-13s %-6s %6s %6s %6s %8s %8s %7s %9s\n"
	fmt.Fprintf(b, "\n"+format, "node", "end", "speed", "tokens", "share", "tokens/s", "stepping", "waiting", "memory")
	for _, n := range r.NodesReport {
		fmt.Fprintf(b, format, status.Clip(n.Name, 13), orDash(n.End), n.speedText(), count(float64(n.Tokens)),
			fmt.Sprintf("%.1f%%", 100*n.Share), n.rateText(), n.steppingText(), n.waitingText(), n.memoryText())
	}
}

func orDash(s string) string { return orDefault(s, "-") }

func (n NodeReport) speedText() string {
	if n.Divisor == 0 {
		return "-"
	}
	return "1/" + fault.Number(n.Divisor)
}

func (n NodeReport) rateText() string {
	if n.TokensPerS == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f", *n.TokensPerS)
}

func (n NodeReport) steppingText() string {
	if n.Time == nil || n.Time.Total == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*(n.Time.Step+n.Time.Paced)/n.Time.Total)
}

func (n NodeReport) waitingText() string {
	if n.Time == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f s", n.Time.Waiting)
}

func (n NodeReport) memoryText() string {
	if n.RSSBytes == nil {
		return "-"
	}
	return status.Bytes(float64(*n.RSSBytes))
}

func (r Report) writeChecks(b *strings.Builder) {
	b.WriteByte('\n')
	for _, c := range r.Checks {
		mark := "ok  "
		if !c.Passed {
			mark = "FAIL"
		}
		wrapped(b, fmt.Sprintf("  %s %-22s ", mark, c.Name), c.Detail)
	}
}

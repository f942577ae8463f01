package testnet

import (
	"fmt"
	"io"
	"strings"
)

// WriteText writes the report for people.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, %d parameters, trained by %d nodes on %s\n\n", r.Model, r.Params, r.Nodes, r.Data)
	r.writeQuality(&b)
	r.writeAccount(&b)
	r.writeChaos(&b)
	r.writeNodes(&b)
	r.writeChecks(&b)
	fmt.Fprintf(&b, "\neverything is in %s\n", r.Dir)
	_, err := io.WriteString(w, b.String())
	return err
}

// item writes a line with its label in a column of its own.
func item(b *strings.Builder, label, format string, args ...any) {
	fmt.Fprintf(b, "  %-10s %s\n", label, fmt.Sprintf(format, args...))
}

func (r Report) writeQuality(b *strings.Builder) {
	if r.ValBPB != nil && r.BaselineBPB != nil {
		item(b, "quality", "%.3f bits per byte on the held-out text; order-2 byte model %.3f (%.2f of it)", *r.ValBPB, *r.BaselineBPB, *r.ValBPB / *r.BaselineBPB)
	}
	item(b, "speed", "%s tokens in %.0f s: %.0f tokens/s%s", count(float64(r.TokensFolded)), r.WallS, r.TokensPerS, r.goodputText())
	item(b, "pace", "%.0f ms x divisor a step, %.0f %% of %d cores (%s)", r.Calibration.PaceMs, 100*r.Calibration.Utilisation, r.Calibration.Cores, r.Calibration.Note)
	item(b, "traffic", "%s received, %.2f bytes per token%s", bytesText(float64(r.BytesReceived)), r.BytesPerToken, r.amplificationText())
}

func (r Report) goodputText() string {
	if r.Goodput == nil || r.GoodputUp == nil {
		return ""
	}
	return fmt.Sprintf("; goodput %.1f %%, %.1f %% of the time that processes lived", 100**r.Goodput, 100**r.GoodputUp)
}

func (r Report) amplificationText() string {
	if r.Amplification == nil {
		return ""
	}
	return fmt.Sprintf("; each payload arrived %.2f times", *r.Amplification)
}

func (r Report) writeAccount(b *strings.Builder) {
	item(b, "account", "%d tokens trained = %d folded + %d discarded + %d unpublished + %d lost", r.TokensTrained, r.TokensFolded, r.TokensDiscarded, r.TokensUnpublished, r.TokensLost)
	item(b, "rounds", "%d closed, %d deltas folded, %d late, %d refused", r.Rounds, r.Deltas, r.Late, r.Refused)
}

func (r Report) writeChaos(b *strings.Builder) {
	if r.Joins+r.Leaves+r.Kills == 0 {
		return
	}
	text := fmt.Sprintf("%d joined, %d left, %d killed", r.Joins, r.Leaves, r.Kills)
	for _, s := range r.JoinS {
		text += fmt.Sprintf("; in %.1f s from start to first folded delta", s)
	}
	for _, s := range r.RecoverS {
		text += fmt.Sprintf("; back in %.1f s", s)
	}
	item(b, "chaos", "%s", text)
}

func (r Report) writeNodes(b *strings.Builder) {
	fmt.Fprintf(b, "\n  %-18s %-7s %6s %9s %7s %9s %8s %8s %8s\n", "node", "end", "speed", "tokens", "share", "tokens/s", "stepping", "waiting", "memory")
	for _, n := range r.NodesReport {
		fmt.Fprintf(b, "  %-18s %-7s %6s %9s %6.1f%% %9s %8s %8s %8s\n", n.Name, orDash(n.End), n.speedText(),
			count(float64(n.Tokens)), 100*n.Share, n.rateText(), n.steppingText(), n.waitingText(), n.memoryText())
	}
}

func orDash(s string) string { return orDefault(s, "-") }

func (n NodeReport) speedText() string {
	if n.Divisor == 0 {
		return "-"
	}
	return "1/" + number(n.Divisor)
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
	return bytesText(float64(*n.RSSBytes))
}

func (r Report) writeChecks(b *strings.Builder) {
	b.WriteByte('\n')
	for _, c := range r.Checks {
		mark := "ok  "
		if !c.Passed {
			mark = "FAIL"
		}
		fmt.Fprintf(b, "  %s %-22s %s\n", mark, c.Name, c.Detail)
	}
}

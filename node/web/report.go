package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"regexp"
	"strings"
	"time"

	"atoll/node/status"
)

// Summary is what the report of a run has beside what its page shows.
type Summary struct {
	Sections []Section
	Card     string  // of the model, as text; "" = none
	Replay   []Frame // the run from its first frame to its last one; nil = its end alone
	Share    bool    // for people outside the run: it names neither machines nor the run
}

// Section is a table of a report.
type Section struct {
	Title string `json:"title"`
	Rows  []Row  `json:"rows"`
}

// Row is a name and what there is to say of it.
type Row struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// reportView is the view of a report. Its fields are those of View, and these.
type reportView struct {
	View
	Sections []Section   `json:"sections"`
	Card     string      `json:"card,omitempty"`
	Replay   []frameView `json:"replay,omitempty"`
}

// WriteReport writes a report of a world as one HTML file, which needs nothing else and asks
// nobody for anything. It is the page with the last view in it. Neither the
// join link nor addresses of machines are in it.
func WriteReport(out io.Writer, w World, s Summary) error {
	clean := withoutAddresses
	if s.Share {
		w, clean = unnamed(w), withoutIDs
	}
	v := reportView{View: viewOf(w, meter{}, newest(w)), Card: plainLines(s.Card), Sections: []Section{}}
	v.CanJoin = false
	v.Detail = clean(v.Detail)
	for i := range v.Notes {
		v.Notes[i] = clean(v.Notes[i])
	}
	for i := range v.Events {
		v.Events[i].Text = clean(v.Events[i].Text)
	}
	for i := range v.Alarms {
		v.Alarms[i].Text, v.Alarms[i].Remedy = clean(v.Alarms[i].Text), clean(v.Alarms[i].Remedy)
	}
	for i := range v.Peers {
		v.Peers[i].Reason = clean(v.Peers[i].Reason)
	}
	for _, section := range s.Sections {
		tidy := Section{Title: section.Title}
		for _, row := range section.Rows {
			tidy.Rows = append(tidy.Rows, Row{plain(row.Name), clean(plain(row.Value))})
		}
		v.Sections = append(v.Sections, tidy)
	}
	v.Replay = framesOf(&v.View, s.Replay, historyOf(w), w.labels())
	if s.Share {
		v.unname()
	}
	dropInfinite(&v)
	data, err := json.Marshal(v) // in which < is written as \u003c, so that no text ends the element
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	page, err := selfContained(data)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if _, err := out.Write(page); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// plainLines is a text of several lines that others may have written in part.
func plainLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = plain(l)
	}
	return strings.Join(lines, "\n")
}

// historyOf is the longest history among the nodes'.
func historyOf(w World) (longest []status.Point) {
	for _, n := range w.Nodes {
		if h := n.Status.History; len(h) > 0 && (longest == nil || h[0].AtMs < longest[0].AtMs) {
			longest = h
		}
	}
	return longest
}

// address is an address of a machine in a text: as libp2p writes them, an IP address, or NAME:PORT.
var address = regexp.MustCompile(`\b[0-9A-Fa-f]{1,4}(:[0-9A-Fa-f]{1,4}){7}\b|\b([0-9A-Fa-f]{1,4}:)+:([0-9A-Fa-f]{1,4}(:[0-9A-Fa-f]{1,4})*)?|[\w-]+(\.[\w-]+)*\.[A-Za-z]{2,}:\d{2,5}\b|/(ip4|ip6|dns|dns4|dns6|dnsaddr)/[^\s,;)\]]+|\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b|\[[0-9A-Fa-f:]{2,}\](:\d+)?`)

// withoutAddresses leaves out where machines are: a report is sent on, and their owners gave
// their addresses to the run alone.
func withoutAddresses(text string) string { return address.ReplaceAllString(text, "(address)") }

// newest is the time of the newest status.
func newest(w World) (at time.Time) {
	for _, n := range w.Nodes {
		if n.Status.At.After(at) {
			at = n.Status.At
		}
	}
	return at
}

// Files whose text stands in a report, in this order.
var (
	reportStyles  = []string{"uplot/uPlot.min.css", "page.css"}
	reportScripts = []string{"uplot/uPlot.iife.min.js", "format.js", "picture.js", "replay.js", "page.js"}
)

// Marks of index.html: what stands between the first two loads files, and the last one is
// where the data of a report goes.
const (
	headBegins = "<!--head-->"
	headEnds   = "<!--/head-->"
	dataMark   = "<!--data-->"
)

// selfContained is the page with its files and its data in it. A policy names the texts that may
// run by their hashes.
func selfContained(data []byte) ([]byte, error) {
	page, err := fs.ReadFile(static, "static/index.html")
	if err != nil {
		return nil, err
	}
	styles, err := joinedFiles(reportStyles)
	if err != nil {
		return nil, err
	}
	scripts, err := joinedFiles(reportScripts)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '%s'; style-src '%s'; base-uri 'none'; form-action 'none'">`+"\n<style>%s</style>", sourceHash(scripts), sourceHash(styles), styles)
	body := fmt.Sprintf(`<script type="application/json" id="data">%s</script>`+"\n<script>%s</script>", data, scripts)
	before, rest, one := bytes.Cut(page, []byte(headBegins))
	_, after, two := bytes.Cut(rest, []byte(headEnds))
	middle, end, three := bytes.Cut(after, []byte(dataMark))
	if !one || !two || !three {
		return nil, fmt.Errorf("index.html lacks one of %s %s %s", headBegins, headEnds, dataMark)
	}
	return bytes.Join([][]byte{before, []byte(head), middle, []byte(body), end}, nil), nil
}

func joinedFiles(names []string) ([]byte, error) {
	var all [][]byte
	for _, name := range names {
		b, err := fs.ReadFile(static, "static/"+name)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return bytes.Join(all, []byte("\n")), nil
}

// sourceHash names an inline text in a content security policy.
func sourceHash(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// NodeSummary says of one node's run what the page does not.
func NodeSummary(s status.Snapshot) Section {
	rows := []Row{
		{"node", s.Self}, {"last started", s.Started.UTC().Format(time.DateTime) + " UTC"}, {"as of", s.At.UTC().Format(time.DateTime) + " UTC"},
		{"steps here", fmt.Sprint(s.Step)}, {"tokens trained here", fmt.Sprint(s.TokensTrained)},
		{"sent", status.Traffic(float64(s.Net.SentBytes))}, {"received", status.Traffic(float64(s.Net.ReceivedBytes))},
		{"deltas folded", fmt.Sprint(s.Account.Deltas)}, {"deltas that came late", fmt.Sprint(s.Account.Late)}, {"deltas refused", fmt.Sprint(s.Account.Refused)},
		{"digest of the chain", s.ChainDigest}, {"digest of the model", s.StateDigest},
	}
	if s.ValBPB > 0 && !math.IsInf(s.ValBPB, 0) {
		rows = append(rows, Row{"held-out text", fmt.Sprintf("%.4f bits per byte on %s", s.ValBPB, status.Bytes(float64(s.ValBytes)))})
	}
	return Section{"This node", rows}
}

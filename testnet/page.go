package testnet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"atoll/node/files"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/web"
)

// PageFile is the report of a world as a page, in its folder.
const PageFile = "report.html"

// IsWorld says whether a folder is that of a testnet.
func IsWorld(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, genesisFile))
	_, node := os.Stat(filepath.Join(dir, nodeName(0)))
	return err == nil && node == nil
}

// Page is the report of the testnet in a folder as a page. Nodes that left no status are not in
// it, and a testnet that did not come to its end has no result. With frames it is a replay.
func Page(dir string, frames []web.Frame) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(dir, genesisFile))
	if err != nil {
		return nil, fmt.Errorf("report of %s: %w", dir, err)
	}
	g, err := genesis.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("report of %s: %w", dir, err)
	}
	r, err := readReport(dir)
	if err != nil {
		return nil, err
	}
	left := leftNodes(dir, r)
	if len(left.Nodes) == 0 {
		return nil, fmt.Errorf("report of %s: no node of this testnet has left a status: it still runs, or all were killed; name the folder of one of its nodes, such as %s", dir, filepath.Join(dir, nodeName(0)))
	}
	return pageOf(g, r, left, frames)
}

// readReport is the report that a world left, nil if it has none.
func readReport(dir string) (*Report, error) {
	b, err := os.ReadFile(filepath.Join(dir, reportFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var r Report
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return nil, fmt.Errorf("report of %s: %w", dir, err)
	}
	return &r, nil
}

// leftNodes are the nodes of a world by the statuses that they left.
func leftNodes(dir string, r *Report) (w web.World) {
	ends := map[string]string{}
	if r != nil {
		for _, n := range r.NodesReport {
			ends[n.Name] = n.End
		}
	}
	for i := range maxNodes {
		name := nodeName(i)
		s, err := status.ReadFinal(filepath.Join(dir, name))
		if err != nil || status.Died(filepath.Join(dir, name)) {
			continue // it was never there, or it was killed and did not come back
		}
		end := web.EndLeft
		if s.Finished {
			end = web.EndDone
		}
		w.Nodes = append(w.Nodes, web.Node{Name: name, Status: s, End: cmp.Or(ends[name], end)})
	}
	return w
}

// LongestLedger is the folder of the node of a testnet that has folded most.
func LongestLedger(dir string) (string, error) {
	best, most := "", uint64(0)
	for _, n := range leftNodes(dir, nil).Nodes {
		if n.Status.TokensFolded > most {
			best, most = n.Name, n.Status.TokensFolded
		}
	}
	if best == "" {
		return "", fmt.Errorf("%s: no node of this testnet left a status with folded tokens; name the folder of one of its nodes, such as %s", dir, filepath.Join(dir, nodeName(0)))
	}
	return filepath.Join(dir, best), nil
}

func pageOf(g genesis.Genesis, r *Report, w web.World, frames []web.Frame) ([]byte, error) {
	settings := web.Section{Title: "Settings"}
	for _, row := range g.Settings() {
		settings.Rows = append(settings.Rows, web.Row{Name: row[0], Value: row[1]})
	}
	summary := web.Summary{Sections: []web.Section{settings}, Card: g.Card(mostFolded(w)), Replay: frames}
	if r != nil {
		summary.Sections = append([]web.Section{r.result(), r.checked()}, summary.Sections...)
	}
	if r != nil && r.Views != nil {
		w = withShares(w, *r)
	}
	var b bytes.Buffer
	err := web.WriteReport(&b, w, summary)
	return b.Bytes(), err
}

// withShares gives the members of a baseline their shares: they have no ledger that says so. What
// they average is the whole model, so there is no fragment to show.
func withShares(w web.World, r Report) web.World {
	w.Nodes = slices.Clone(w.Nodes)
	for i := range w.Nodes {
		s := &w.Nodes[i].Status
		s.Fragments, s.Peers = nil, slices.Clone(s.Peers)
		for _, row := range r.NodesReport {
			at := slices.IndexFunc(s.Peers, func(p status.Peer) bool { return p.ID == row.ID })
			if at < 0 {
				at = len(s.Peers)
				s.Peers = append(s.Peers, status.Peer{ID: row.ID, Role: row.Role, State: s.State})
			}
			s.Peers[at].Share, s.Peers[at].TokensFolded = row.Share, float64(row.TokensFolded)
			if !s.Peers[at].Self {
				s.Peers[at].Link = status.LinkDirect // all members of a view are connected
			}
		}
	}
	return w
}

func mostFolded(w web.World) (most uint64) {
	for _, n := range w.Nodes {
		most = max(most, n.Status.TokensFolded)
	}
	return most
}

// result is what came of a world.
func (r Report) result() web.Section {
	s := web.Section{Title: "Result"}
	if r.Views != nil {
		s.Title = "Result of the baseline " + r.Baseline
	}
	add := func(name, format string, args ...any) {
		s.Rows = append(s.Rows, web.Row{Name: name, Value: fmt.Sprintf(format, args...)})
	}
	if r.ValBPB != nil {
		add("held-out text", "%.4f bits per byte on %s", *r.ValBPB, status.Bytes(float64(r.ValBytes)))
	}
	add("tokens folded", "%d of %d", r.TokensFolded, r.TokensBudget)
	add("time", "%.0f s, %.0f tokens/s", r.WallS, r.TokensPerS)
	if r.Goodput != nil {
		add("goodput", "%.0f %% of the learners' time is in the model", 100**r.Goodput)
	}
	add("traffic", "%s received, %.2f bytes per token", status.Traffic(float64(r.BytesReceived)), r.BytesPerToken)
	if r.Views != nil {
		add("steps", "%d of every member, in %s", *r.Steps, plural(int(*r.Views), "view"))
	} else {
		add("rounds and deltas", "%d closed, %d folded, %d late (after their round had closed; folded anyway)", r.Rounds, r.Deltas, r.Late)
	}
	add("faults", "%s", r.faultText())
	add("digest of the model", "%s", r.StateDigest)
	return s
}

// faultText counts what chaos did.
func (r Report) faultText() string {
	var parts []string
	for _, f := range []struct {
		n    int
		name string
	}{{r.Joins, "join"}, {r.Leaves, "leave"}, {r.Kills, "kill"}, {r.Pauses, "pause"}, {r.Partitions, "partition"}, {r.Corruptions, "corruption"}, {r.Liars, "liar"}, {r.Faults.Links, "link change"}, {r.Faults.Learners, "learner kill"}} {
		if f.n > 0 {
			parts = append(parts, plural(f.n, f.name))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

// checked are the checks of a world.
func (r Report) checked() web.Section {
	s := web.Section{Title: "Checks"}
	for _, c := range r.Checks {
		verdict := "ok: "
		if !c.Passed {
			verdict = "FAILED: "
		}
		s.Rows = append(s.Rows, web.Row{Name: c.Name, Value: verdict + c.Detail})
	}
	return s
}

// savePage writes the report as a page beside the other one.
func (w *world) savePage(r *Report) error {
	page, err := pageOf(w.genesis, r, w.watched(), nil)
	if err != nil {
		return err
	}
	if err := files.Write(w.path(PageFile), page, 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

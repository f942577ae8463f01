package headline

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"atoll/testnet/lab/fleet"
	"atoll/testnet/lab/sweep"
)

// Pictures, in the folder of results.
const (
	goodputFile = "goodput.svg"
	speedFile   = "speed.svg"
)

// drawPlots writes the pictures.
func (t typed) drawPlots(out io.Writer) error {
	all, err := stored(t.Out)
	if err != nil {
		return err
	}
	goodput, err := goodputPlot()
	if err != nil {
		return err
	}
	pictures := map[string]sweep.Plot{goodputFile: goodput}
	if speed := speedPlot(all); len(speed.Series) > 0 {
		pictures[speedFile] = speed
	}
	for name, p := range pictures {
		path := filepath.Join(t.Out, name)
		if err := os.WriteFile(path, []byte(p.SVG()), 0o644); err != nil {
			return fmt.Errorf("write a picture: %w", err)
		}
		fmt.Fprintln(out, path)
	}
	return nil
}

// plotChips are the sizes of the published table, and smaller ones.
var plotChips = []float64{10e3, 30e3, 75e3, 150e3, 300e3, 600e3, 1.2e6, 2.4e6}

// goodputPlot shows what failures leave of the work, by the simulator of fleets.
func goodputPlot() (sweep.Plot, error) {
	p := sweep.Plot{Title: "Work kept while chips fail, one year per chip (simulated)", XLabel: "chips", YLabel: "goodput, %", LogX: true}
	for _, line := range []struct {
		name     string
		system   fleet.System
		learners int
	}{{"atoll, 64 learners", fleet.Atoll, 64}, {"atoll, 8 learners", fleet.Atoll, 8}, {"elastic data parallel", fleet.Elastic, 1}, {"data parallel", fleet.DP, 1}} {
		s := sweep.Series{Name: line.name}
		for _, chips := range plotChips {
			c := fleet.Default()
			c.System, c.Learners, c.Chips = line.system, line.learners, chips
			r, err := fleet.Run(c)
			if err != nil {
				return p, err
			}
			s.Points = append(s.Points, sweep.XY{X: chips, Y: 100 * r.Goodput})
		}
		p.Series = append(p.Series, s)
	}
	return p, nil
}

// plotMbit are the links of the formula.
var plotMbit = []float64{5, 10, 20, 50, 100, 200, 500, 1000}

// speedPlot shows tokens per second over links, as the row thin has measured them.
func speedPlot(all []Result) (p sweep.Plot) {
	p = sweep.Plot{Title: "Speed of four nodes over their links, 10.7 M parameters", XLabel: "link of each node, Mbit/s (40 ms)", YLabel: "tokens per second", LogX: true, LogY: true}
	atoll, dp := sweep.Series{Name: "atoll"}, sweep.Series{Name: "data parallel"}
	for _, r := range all {
		for _, s := range r.Lines {
			for _, l := range thinLinks {
				if r.Row == thinRow.Name && s.What == thinWhat(l.mbit) && s.Atoll != nil && s.Beside != nil {
					atoll.Points = append(atoll.Points, sweep.XY{X: l.mbit, Y: s.Atoll.Median})
					dp.Points = append(dp.Points, sweep.XY{X: l.mbit, Y: s.Beside.Median})
				}
			}
		}
	}
	if len(atoll.Points) == 0 {
		return p
	}
	most := sweep.Series{Name: "data parallel, by formula"}
	for _, mbit := range plotMbit {
		most.Points = append(most.Points, sweep.XY{X: mbit, Y: dpRate(4, smallParams, smallStep, mbit, delay)})
	}
	p.Series = []sweep.Series{atoll, dp, most}
	return p
}

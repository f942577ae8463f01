package fleet

import "math"

// published is the goodput in percent of arXiv 2604.21428, of chips of which each fails once a year.
var published = []struct {
	system   System
	learners int
	percent  [5]float64 // at publishedChips
}{
	{DP, 1, [5]float64{72, 57, 38, 27, 18}},
	{Elastic, 1, [5]float64{88, 80, 69, 58, 40}},
	{Decoupled, 2, [5]float64{94, 88, 80, 70, 54}},
	{Decoupled, 4, [5]float64{96, 93, 89, 82, 73}},
	{Decoupled, 8, [5]float64{98, 96, 94, 88, 80}},
	{Decoupled, 16, [5]float64{99, 98, 96, 93, 86}},
}

var publishedChips = [5]float64{150e3, 300e3, 600e3, 1.2e6, 2.4e6}

// Cell is one of the published table, and what is simulated beside it.
type Cell struct {
	System    System  `json:"system"`
	Learners  int     `json:"learners"`
	Chips     float64 `json:"chips"`
	Goodput   float64 `json:"goodput"`
	Published float64 `json:"published"`
	Uptime    float64 `json:"uptime"`
}

// Off is how far the two are apart.
func (c Cell) Off() float64 { return math.Abs(c.Goodput - c.Published) }

// Compare simulates every cell of the published table.
func Compare(seed uint64) (cells []Cell, err error) {
	for _, row := range published {
		for i, percent := range row.percent {
			c := Default()
			c.System, c.Learners, c.Chips, c.Seed = row.system, row.learners, publishedChips[i], seed
			r, err := Run(c)
			if err != nil {
				return nil, err
			}
			cells = append(cells, Cell{c.System, c.Learners, c.Chips, r.Goodput, percent / 100, r.Uptime})
		}
	}
	return cells, nil
}

package fleet

import (
	"math"
	"strings"
	"testing"
	"time"
)

// fitted are runs of the published table, of 1, 10 and 100 billion parameters. The times of a step and the numbers of fragments
// are fitted to it: the rows of plain DiLoCo and of overlapped streaming.
var fitted = []Need{
	{Params: 1e9, Step: 143 * time.Millisecond, Learners: 2, H: 100, Fragments: 8, Utilisation: 0.95},
	{Params: 10e9, Step: 981 * time.Millisecond, Learners: 2, H: 100, Fragments: 24, Utilisation: 0.95},
	{Params: 100e9, Step: 6750 * time.Millisecond, Learners: 2, H: 100, Fragments: 40, Utilisation: 0.95},
}

// publishedLinks are Gbit/s for 95 % of the time, arXiv 2501.18512. They lie on a grid whose points are 1.2 times the one
// before, so that the true figure is up to a sixth below.
var publishedLinks = map[string][3]float64{
	"data parallel":                {222, 268, 391},
	"diloco":                       {23, 34, 49},
	"streaming":                    {16, 13, 11},
	"streaming, overlapped":        {9.1, 6.2, 5.2},
	"streaming, overlapped, 4 bit": {2.0, 1.4, 1.1},
	"eager, 4 bit":                 {0.2, 0.3, 0.3},
}

// The published links are met within a point or two of their grid. The eager ones are not: this model asks up to twice as much
// for them.
func TestPublishedLinks(t *testing.T) {
	for i, n := range fitted {
		links, err := n.Bandwidth()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			want, ok := publishedLinks[l.Method]
			if !ok {
				continue
			}
			ratio, most := l.Bits/1e9/want[i], 1.25
			if strings.HasPrefix(l.Method, "eager") {
				most = 2
			}
			t.Logf("%.0e parameters, %s: %.3g Gbit/s, published %g: %.2f", n.Params, l.Method, l.Bits/1e9, want[i], ratio)
			if ratio > most || ratio < 1/1.35 {
				t.Errorf("%.0e parameters, %s: %.3g Gbit/s, published %g", n.Params, l.Method, l.Bits/1e9, want[i])
			}
		}
	}
}

// The headline of Decoupled DiLoCo: between eight places, 198 Gbit/s become 0.84.
func TestPublishedDecoupledLink(t *testing.T) {
	links, err := Need{Params: 5e9, Step: time.Second, Learners: 8, H: 24, Fragments: 24, Utilisation: 0.95}.Bandwidth()
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]float64{}
	for _, l := range links {
		of[l.Method] = l.Bits
	}
	if ratio := of["data parallel"] / of["decoupled, a learner, 4 bit"]; math.Abs(ratio/(198/0.84)-1) > 0.25 {
		t.Errorf("data parallelism asks %.0f times what a learner asks, published %.0f", ratio, 198/0.84)
	}
}

func TestRefusesNeeds(t *testing.T) {
	for text, change := range map[string]func(*Need){
		"params is 0": func(n *Need) { n.Params = 0 }, "step is 0s": func(n *Need) { n.Step = 0 }, "learners is 1": func(n *Need) { n.Learners = 1 },
		"h is 0": func(n *Need) { n.H = 0 }, "fragments is 101": func(n *Need) { n.Fragments = 101 }, "utilisation is 1": func(n *Need) { n.Utilisation = 1 },
		"utilisation is NaN": func(n *Need) { n.Utilisation = math.NaN() },
	} {
		n := fitted[0]
		change(&n)
		if _, err := n.Bandwidth(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("want %q, got %v", text, err)
		}
	}
}

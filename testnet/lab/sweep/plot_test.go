package sweep

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// wellFormed reads all of an XML text.
func wellFormed(t *testing.T, s string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, s)
		}
	}
}

func TestSVG(t *testing.T) {
	p := Plot{Title: "a < b", LogX: true, Series: []Series{
		{"one", []XY{{1, 3}, {100, 2}}}, {"none", nil}, {"gaps", []XY{{0, 2}, {10, math.NaN()}, {10, 2.5}}},
	}}
	s := p.SVG()
	wellFormed(t, s)
	if n := strings.Count(s, "<circle"); n != 3 {
		t.Errorf("%d marks, want 3: a logarithm of 0 and a NaN have no place", n)
	}
	if !strings.Contains(s, "a &lt; b") {
		t.Error("the title is not there, or not escaped")
	}
	wellFormed(t, Plot{}.SVG())
}

func TestTicksAreRound(t *testing.T) {
	linear := axis{lo: 2.31, hi: 3.49}.ticks()
	if len(linear) != 6 || math.Abs(linear[0]-2.4) > 1e-9 || math.Abs(linear[5]-3.4) > 1e-9 {
		t.Errorf("ticks %v, want 2.4 to 3.4 by 0.2", linear)
	}
	logarithmic := axis{lo: math.Log10(3), hi: math.Log10(60), log: true}.ticks()
	if len(logarithmic) != 4 || logarithmic[0] != 5 || logarithmic[3] != 50 {
		t.Errorf("ticks %v, want 5, 10, 20, 50", logarithmic)
	}
}

func TestFrontierIsInOrder(t *testing.T) {
	trials := []Trial{trial(1, 3, "h=4"), trial(1, 2, "h=8"), trial(1, 5, "h=8", "codec=f32"), trial(1, 1, "arm=local"), trial(1, 4, "arm=dp")}
	trials[0].PayloadPerToken, trials[1].PayloadPerToken, trials[3].PayloadPerToken = 9, 5, 0
	p := Frontier(Groups(trials), []string{"arm", "codec"})
	if len(p.Series) != 3 || p.Series[2].Name != "dp" || p.Series[0].Name != "atoll, codec int4" || p.Series[1].Name != "atoll, codec f32" {
		t.Fatalf("series %+v", p.Series)
	}
	if q := p.Series[0].Points; len(q) != 2 || q[0] != (XY{5, 2}) || q[1] != (XY{9, 3}) {
		t.Errorf("points %v", q)
	}
}

// A curve is the mean over the seeds, as far as all go.
func TestCurves(t *testing.T) {
	a, b := trial(1, 3), trial(2, 3)
	a.Curve, b.Curve = []Point{{10, 4}, {20, 3}}, []Point{{12, 5}}
	p := Curves(Groups([]Trial{a, b}), []string{"arm"})
	if len(p.Series) != 1 || len(p.Series[0].Points) != 1 || p.Series[0].Points[0] != (XY{11, 4.5}) {
		t.Errorf("%+v", p.Series)
	}
}

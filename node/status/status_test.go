package status

import "testing"

func TestMeanTokens(t *testing.T) {
	for _, c := range []struct {
		fragments []Fragment
		tokens    []uint64
		want      float64
	}{
		{[]Fragment{{Params: 1}, {Params: 3}}, []uint64{4, 8}, 7},
		{[]Fragment{{Params: 2}}, []uint64{5, 100}, 5},
		{nil, []uint64{5}, 0},
		{[]Fragment{{Params: 2}}, nil, 0},
	} {
		if got := MeanTokens(c.fragments, c.tokens); got != c.want {
			t.Errorf("of %v by %v it is %v, want %v", c.tokens, c.fragments, got, c.want)
		}
	}
}

// People read how far what is final got, or what keeps it from getting on.
func TestFinalText(t *testing.T) {
	for want, f := range map[string]*Final{
		"": nil,
		"nothing yet: votes begin when round 320 has closed":                                   {First: 320},
		"up to round 64, 310 rounds behind":                                                    {Certificates: 1, Round: 64, Behind: 310, First: 320},
		"up to round 64, 900 rounds behind, and this node's chain is another one":              {Certificates: 1, Round: 64, Behind: 900, OtherChain: true},
		"not known yet: 7 certificates came, and this node joined after their rounds":          {Waiting: 7},
		"up to round 64, 900 rounds behind; a vote is under way, and 2 of 5 voters are silent": {Round: 64, Behind: 900, View: 3, Voters: 5, Silent: []string{"a", "b"}},
	} {
		if got := f.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

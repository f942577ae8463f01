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

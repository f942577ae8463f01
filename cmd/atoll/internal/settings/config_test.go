package settings

import "testing"

func TestFlagText(t *testing.T) {
	for _, c := range []struct{ value, want any }{
		{true, true},
		{int64(12), "12"},
		{2e6, "2e+06"},
		{"x", "x"},
		{[]any{"a", "b"}, "a,b"},
		{[]any{int64(1), 2.5}, "1,2.5"},
	} {
		if got := flagText(c.value); got != c.want {
			t.Errorf("%v: %v, want %v", c.value, got, c.want)
		}
	}
}

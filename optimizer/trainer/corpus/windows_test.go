package corpus

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestWindows(t *testing.T) {
	for _, tc := range []struct {
		data    string
		context int
		want    []string
	}{
		{"", 2, nil},
		{"a", 2, nil},
		{"ab", 2, []string{"ab"}},
		{"abc", 2, []string{"abc"}},
		{"abcd", 2, []string{"abc", "cd"}},
		{"abcde", 2, []string{"abc", "cde"}},
	} {
		var got []string
		for _, w := range Windows([]byte(tc.data), tc.context) {
			got = append(got, string(w))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%q by %d: %q, want %q", tc.data, tc.context, got, tc.want)
		}
	}
}

func TestWindowsScoreEachByteOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "data")
		context := rapid.IntRange(1, 64).Draw(t, "context")
		var targets []byte
		for _, w := range Windows(data, context) {
			targets = append(targets, w[1:]...)
		}
		if !slices.Equal(targets, data[1:]) {
			t.Fatalf("targets are %v, want %v", targets, data[1:])
		}
	})
}

func TestHeldOutSample(t *testing.T) {
	c := New("pattern", []byte(pattern(10_000))) // 1,000 held out: 100 windows of 10
	for _, tc := range []struct{ targets, want int }{{0, 1}, {50, 5}, {999, 99}, {1 << 20, 100}} {
		if got := len(c.HeldOutSample(tc.targets, 10)); got != tc.want {
			t.Errorf("%d targets: %d windows, want %d", tc.targets, got, tc.want)
		}
	}
	sample, held := c.HeldOutSample(20, 10), c.HeldOut()
	if &sample[0][0] != &held[250] || &sample[1][0] != &held[750] {
		t.Error("two windows do not begin at a quarter and three quarters")
	}
}

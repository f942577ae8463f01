package sweep

import (
	"strings"
	"testing"
)

// trial is one that came to a quality.
func trial(seed uint64, bits float64, set ...string) Trial {
	s := Default()
	for _, word := range set {
		if err := assign(&s, word); err != nil {
			panic(err)
		}
	}
	return Trial{Setting: s, Seed: seed, ValBPB: bits, Folded: s.Tokens, PayloadPerToken: 10, Rounds: 20}
}

var someTrials = []Trial{
	trial(1, 2.0, "arm=dp", "lr=1e-3"), trial(2, 4.0, "arm=dp", "lr=1e-3"),
	trial(1, 2.2, "arm=dp", "lr=4e-3"), trial(2, 4.2, "arm=dp", "lr=4e-3"),
	trial(2, 4.12, "h=4"), trial(1, 2.02, "h=4"), trial(1, 9, "h=4"), // the last one comes twice
	trial(1, 1, "arm=dp", "m=2"), trial(1, 3, "m=2"),
}

func TestTable(t *testing.T) {
	failed := trial(3, 0, "h=4")
	failed.Failed = "diverged"
	over := trial(4, 3, "h=8")
	over.Folded += over.Folded / 50
	all := Groups(append(someTrials[:len(someTrials):len(someTrials)], failed, over))
	ref := Filter{"arm": {DP}}
	got := Table(all, all, ref, []string{"m"})
	want := `| arm | m | lr | h | seeds | bits per byte | sd | difference % | payload bytes per token | rounds | stale |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| dp | 4 | 0.001 | - | 2 | 3.0000 | 1.4142 | reference | 10.0 | 20 | 0.00 |
| dp | 4 | 0.004 | - | 2 | 3.2000 | 1.4142 | +7.50 ± 31.77 | 10.0 | 20 | 0.00 |
| atoll | 4 | 0.002 | 4 | 2, 1 failed | 3.0700 | 1.4849 | +2.00 ± 12.71 | 10.0 | 20 | 0.00 |
| dp | 2 | 0.002 | - | 1 | 1.0000 | 0.0000 | reference | 10.0 | 20 | 0.00 |
| atoll | 2 | 0.002 | 24 | 1 | 3.0000 | 0.0000 | +200.00 | 10.0 | 20 | 0.00 |
| atoll | 4 | 0.002 | 8 | 1 | 3.0000 (+2.0 % tokens) | 0.0000 | no seed in common | 10.0 | 20 | 0.00 |
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFilter(t *testing.T) {
	f, err := ParseFilter("arm=dp,lr=0.001,lr=0.004")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.Select(Groups(someTrials))); n != 2 {
		t.Errorf("%d groups, want the two of dp with these rates", n)
	}
	for _, bad := range []string{"arm", "hh=3"} {
		if _, err := ParseFilter(bad); err == nil {
			t.Errorf("took %q", bad)
		}
	}
	if _, err := ParseNames("arm,hh"); err == nil || !strings.Contains(err.Error(), `"hh"`) {
		t.Errorf("error %v", err)
	}
}

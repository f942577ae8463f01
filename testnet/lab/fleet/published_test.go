package fleet

import (
	"fmt"
	"testing"
)

// Every cell of the published table is within 5 points, and all are within 1.5 on average, whatever is drawn.
func TestPublishedGoodput(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			cells, err := Compare(seed)
			if err != nil {
				t.Fatal(err)
			}
			var mean float64
			for _, c := range cells {
				mean += c.Off() / float64(len(cells))
				if c.Off() > 0.05 {
					t.Errorf("%s, %d learners, %.0f chips: %.3f, published %.2f", c.System, c.Learners, c.Chips, c.Goodput, c.Published)
				}
			}
			if t.Logf("%.2f points off on average", 100*mean); mean > 0.015 {
				t.Errorf("%.2f points off on average, at most 1.5", 100*mean)
			}
		})
	}
}

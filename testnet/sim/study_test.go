package sim

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestStudy(t *testing.T) {
	from, to := seedRange(t)
	var next atomic.Uint64
	next.Store(from)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1) - 1; seed < to; seed = next.Add(1) - 1 {
				s := Explore(seed)
				begun := time.Now()
				r, err := Run(s)
				mu.Lock()
				text := ""
				if err != nil {
					text = "SETUP " + err.Error()
				} else if r.Err != nil {
					text = "FAIL " + r.Check + " " + strings.ReplaceAll(r.Err.Error(), "\n", " | ")[:min(400, len(r.Err.Error()))]
				}
				guests, lie := 0, ""
				for _, f := range s.Founders {
					if f.Guest {
						guests++
					}
					if f.Attack.Kind != "" {
						lie = string(f.Attack.Kind)
					}
				}
				fmt.Fprintf(os.Stderr, "seed %d n=%d guests=%d lie=%s open=%v own=%v H=%d merge=%s mu=%g eta=%.2g planned? P=%d codec=%v C=%d faults=%d %.1fs rounds=%d %s\n", seed, len(s.Founders), guests, lie, s.Open, s.Params.OwnText, s.Params.H, s.Params.Merge, s.Params.Mu, s.Params.Eta, s.Params.Fragments, s.Params.Codec, s.Params.Answerers, len(s.Faults), time.Since(begun).Seconds(), r.Rounds, text)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

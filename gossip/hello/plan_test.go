package hello

import (
	"testing"

	"pgregory.net/rapid"
)

func TestPlan(t *testing.T) {
	const ample = 1 << 40
	for name, c := range map[string]struct {
		speed        float64
		memory       uint64
		local        int
		limit        uint64
		batch, micro int
	}{
		"one core keeps the local batch":     {12_000, ample, 4, 65536, 4, 4},
		"two cores keep it":                  {24_000, ample, 4, 65536, 4, 4},
		"just fast enough for twice of it":   {51_200, ample, 4, 65536, 8, 8},
		"just not":                           {51_199, ample, 4, 65536, 4, 4},
		"an accelerator brings more":         {1_000_000, ample, 4, 65536, 128, 128},
		"up to the limit of the run":         {1_000_000, ample, 4, 4096, 32, 32},
		"the limit is below the local batch": {12_000, ample, 4, 256, 2, 2},
		"the limit is below one row":         {12_000, ample, 4, 1, 1, 1},
		"unmeasured":                         {0, 0, 4, 65536, 4, 4},
		"little memory splits the batch":     {12_000, 1 << 30, 4, 65536, 4, 2},
		"no memory, row by row":              {12_000, 1, 4, 65536, 4, 1},
		"an odd batch splits into rows":      {12_000, 1 << 30, 6, 65536, 6, 1},
		"nonsense":                           {12_000, ample, 0, 65536, 1, 1},
	} {
		r := Record{TokensPerSecond: c.speed, MemoryBytes: c.memory}
		batch, micro := Plan(r, c.local, 128, c.limit)
		if batch != c.batch || micro != c.micro {
			t.Errorf("%s: batch %d in %d, want %d in %d", name, batch, micro, c.batch, c.micro)
		}
	}
}

func TestPlanKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t, 1)
		local := rapid.IntRange(1, 64).Draw(t, "local")
		context := rapid.IntRange(1, 4096).Draw(t, "context")
		limit := rapid.Uint64Range(0, 1<<24).Draw(t, "limit")
		batch, micro := Plan(r, local, context, limit)
		if batch < 1 || micro < 1 || batch%micro != 0 {
			t.Fatalf("batch %d does not divide into %d", batch, micro)
		}
		if batch > 1 && tokens(batch, context) > limit {
			t.Fatalf("batch %d has %d tokens, limit %d", batch, tokens(batch, context), limit)
		}
		if batch > local && float64(tokens(batch, context)) > MinStepSeconds*r.TokensPerSecond {
			t.Fatalf("batch %d was raised past the minimum step time", batch)
		}
	})
}

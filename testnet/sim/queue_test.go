package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Events come out by time, and events of one moment in the order in which they
// went in, however pushes and pops mix and however far ahead events are.
func TestQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []event
		var now Time
		span := rapid.SampledFrom([]Time{3, wheelMs - 1, wheelMs, wheelMs + 1, 3 * wheelMs}).Draw(t, "span")
		for range rapid.IntRange(0, 300).Draw(t, "operations") {
			at, any := q.next()
			if any != (len(want) > 0) || any && at != want[0].at {
				t.Fatalf("next is at %d (%t), want %v", at, any, want[:min(1, len(want))])
			}
			if any && rapid.IntRange(0, 2).Draw(t, "pop") == 0 {
				got := q.pop()
				if got.seq != want[0].seq || got.at != want[0].at {
					t.Fatalf("popped event %d at %d, want %d at %d", got.seq, got.at, want[0].seq, want[0].at)
				}
				now, want = got.at, want[1:]
				continue
			}
			e := event{at: now + rapid.Int64Range(0, span).Draw(t, "ahead")}
			q.push(e)
			e.seq = q.seq
			want = append(want, e)
			slices.SortFunc(want, func(a, b event) int {
				if a.before(&b) {
					return -1
				}
				return 1
			})
		}
	})
}

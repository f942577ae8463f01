package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Events come out by time, and those of one moment in the order in which they
// went in, however pushes and pops mix.
func TestQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []event
		for range rapid.IntRange(0, 300).Draw(t, "operations") {
			if len(want) > 0 && rapid.IntRange(0, 2).Draw(t, "pop") == 0 {
				if got := q.pop(); got.seq != want[0].seq {
					t.Fatalf("popped event %d at %d, want %d at %d", got.seq, got.at, want[0].seq, want[0].at)
				}
				want = want[1:]
				continue
			}
			q.push(event{at: rapid.Int64Range(0, 20).Draw(t, "at")})
			want = append(want, event{at: q.heapAt(q.seq), seq: q.seq})
			slices.SortFunc(want, func(a, b event) int {
				if a.before(&b) {
					return -1
				}
				return 1
			})
		}
	})
}

// heapAt is the time of the event with a number.
func (q *queue) heapAt(seq uint64) Time {
	i := slices.IndexFunc(q.heap, func(e event) bool { return e.seq == seq })
	return q.heap[i].at
}

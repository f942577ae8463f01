package training

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"atoll/optimizer/trainer/external"
	"pgregory.net/rapid"
)

// measured plays an evaluation whose rows take so long each, and returns its parts and what was found.
func measured(m *measuring, perRow time.Duration, answer func(rows []uint64) external.Evaluation) (parts []int, q external.Evaluation, err error) {
	m.Found = func(found external.Evaluation, _ time.Duration, failed error) { q, err = found, failed }
	for more := true; more; {
		rows := m.next()
		parts = append(parts, len(rows))
		more = m.part(answer(rows), len(rows), time.Duration(len(rows))*perRow, nil)
	}
	return parts, q, err
}

// onText answers as a learner does that measures the rows that it is given: their places are their losses.
func onText(rows []uint64) (q external.Evaluation) {
	for _, at := range rows {
		q.Loss += float64(at) / float64(len(rows))
	}
	q.Tokens, q.Bytes = 8*len(rows), 8*len(rows)
	return q
}

// Whatever a row takes, the parts are all rows, their mean is that of the whole, and none takes long once the speed is known.
func TestPartsOfAnEvaluation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, rows := rapid.IntRange(1, 300).Draw(t, "rows"), rapid.IntRange(1, 40).Draw(t, "first")
		perRow := time.Duration(rapid.IntRange(1, int(evalMost/2)).Draw(t, "a row takes"))
		starts, mean := make([]uint64, n), 0.0
		for i := range starts {
			starts[i] = rapid.Uint64Max(1000).Draw(t, "place")
			mean += float64(starts[i]) / float64(n)
		}
		parts, q, err := measured(&measuring{Evaluation: Evaluation{Starts: starts}, rows: &rows}, perRow, onText)
		if err != nil || q.Tokens != 8*n || q.Bytes != 8*n || math.Abs(q.Loss-mean) > 1e-9*(1+mean) {
			t.Fatalf("%+v, %v; want %v on %d rows", q, err, mean, n)
		}
		for _, part := range parts[1:] {
			if took := time.Duration(part) * perRow; took > evalPart && part > 1 {
				t.Fatalf("a part of %d rows took %v", part, took)
			}
		}
	})
}

// A learner that does not count targets is asked for means over rows, one with text of its own for ever more of that.
func TestPartsWithoutCounts(t *testing.T) {
	rows := 4
	plain := func(part []uint64) external.Evaluation { return external.Evaluation{Loss: onText(part).Loss} }
	parts, q, err := measured(&measuring{Evaluation: Evaluation{Starts: []uint64{1, 2, 3, 4, 10}}, rows: &rows}, time.Second, plain)
	if want := []int{4, 1}; err != nil || q.Loss != 4 || q.Tokens != 0 || !slices.Equal(parts, want) {
		t.Errorf("parts %v, %+v, %v", parts, q, err)
	}
	rows = 2
	parts, q, err = measured(&measuring{Evaluation: Evaluation{Starts: make([]uint64, 100), Own: true}, rows: &rows}, 20*time.Millisecond, func(part []uint64) external.Evaluation {
		return external.Evaluation{Loss: float64(len(part)), Tokens: 3 * len(part)}
	})
	if want := []int{2, 16, 100}; err != nil || q.Loss != 100 || q.Tokens != 300 || !slices.Equal(parts, want) {
		t.Errorf("with text of its own: parts %v, %+v, %v", parts, q, err)
	}
	rows = 2
	if parts, _, _ := measured(&measuring{Evaluation: Evaluation{Starts: make([]uint64, 100), Own: true}, rows: &rows}, 10*time.Second, onText); !slices.Equal(parts, []int{2}) || rows != 1 {
		t.Errorf("a slow one: parts %v, then %d rows", parts, rows)
	}
	rows = 2
	if parts, _, _ := measured(&measuring{Evaluation: Evaluation{Starts: make([]uint64, 100), Whole: true}, rows: &rows}, 10*time.Second, onText); !slices.Equal(parts, []int{100}) {
		t.Errorf("at the end of a run: parts %v", parts)
	}
}

// Who cannot measure one row in time is not asked again.
func TestSlowEvaluation(t *testing.T) {
	rows := 1
	_, _, err := measured(&measuring{Evaluation: Evaluation{Starts: make([]uint64, 5)}, rows: &rows}, evalMost+time.Second, onText)
	if !errors.Is(err, external.ErrSlowEvaluation) {
		t.Fatal(err)
	}
}

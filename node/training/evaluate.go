package training

import (
	"cmp"
	"fmt"
	"time"

	"atoll/optimizer/outer"
	"atoll/optimizer/trainer/external"
)

// Times of an evaluation by the learner. It takes no step meanwhile, and what the loop asks of it waits, so it is cut into
// parts: the loop's requests and a step go between two of them.
const (
	// evalPart is how long a part should take: little beside a round.
	evalPart = 2 * time.Second
	// evalMost is what a part may take that cannot be made smaller: a learner that needs longer is asked once.
	evalMost = 20 * time.Second
	// evalGrowth bounds how many times larger the next part is: the first tells little of speed, as frameworks compile in it.
	evalGrowth = 8
)

// Evaluation is what a learner in another process is asked to measure, part by part.
type Evaluation struct {
	Starts []uint64 // places of the rows
	Bytes  int      // of text that all their targets stand for, which the node knows of a corpus; 0 if the learner says
	Own    bool     // the learner measures text of its own: a larger part replaces a smaller one
	Whole  bool     // in one part: the run is over, and nothing waits
	Rows   int      // of the first part of all evaluations

	Plan  outer.Plan
	Tips  []*outer.Tip // of the global parameters that are measured
	Aside Aside        // takes them, where they are large

	By    func(fill func(values []float32) error, starts []uint64) (external.Evaluation, error) // measures a part
	Then  func()                                                                                // after each part: the next step may be far off
	Found func(q external.Evaluation, took time.Duration, err error)
}

// Evaluate begins an evaluation where commands run, between two steps.
func (t *Thread) Evaluate(e Evaluation) {
	if t.rows == 0 {
		t.rows = e.Rows
	}
	a := &globals{plan: e.Plan, tips: e.Tips}
	if !e.Whole {
		t.cfg.Report("put the values of an evaluation aside", a.keep(e.Aside))
	}
	found := e.Found
	e.Found = func(q external.Evaluation, took time.Duration, err error) {
		t.cfg.Report("let go of the values of an evaluation", a.close())
		found(q, took, err)
	}
	t.evaluatePart(a, &measuring{Evaluation: e, rows: &t.rows})
}

// evaluatePart does a part, and has the next one come after what the loop has asked for meanwhile.
func (t *Thread) evaluatePart(a *globals, m *measuring) {
	defer t.does(&t.account.Evaluate)()
	t.Rest()
	defer m.Then()
	rows, began := m.next(), t.now()
	q, err := m.By(a.fill, rows)
	if m.part(q, len(rows), t.since(began), err) {
		t.Do(func() { t.evaluatePart(a, m) })
	}
}

// measuring is an evaluation that is under way. It belongs to the commands.
type measuring struct {
	Evaluation      // its rows are those that are left
	rows       *int // of a part, from one evaluation to the next

	sum    external.Evaluation // of the parts so far; its loss is the sum over what weight counts
	weight float64             // targets, or rows where the learner does not count these
	took   time.Duration
}

// next is the part that comes next.
func (m *measuring) next() []uint64 {
	if m.Whole {
		return m.Starts
	}
	return m.Starts[:min(len(m.Starts), max(1, *m.rows))]
}

// part takes in what came of so many rows. It reports whether there are more to come; otherwise found is told.
func (m *measuring) part(q external.Evaluation, rows int, took time.Duration, err error) (more bool) {
	m.took += took
	if err == nil && took > evalMost && rows == 1 && !m.Whole {
		err = fmt.Errorf("%w: one row takes it %v: let it measure on less text", external.ErrSlowEvaluation, took.Round(time.Second))
	}
	if err != nil {
		m.Found(external.Evaluation{}, m.took, err)
		return false
	}
	*m.rows = nextRows(rows, took)
	if m.Own {
		m.sum, m.weight = external.Evaluation{}, 0
		more = rows < len(m.Starts) && *m.rows > rows
	} else {
		m.Starts = m.Starts[rows:]
		more = len(m.Starts) > 0
	}
	m.add(q, rows)
	if !more {
		m.sum.Loss /= m.weight
		m.sum.Bytes = cmp.Or(m.Bytes, m.sum.Bytes)
		m.Found(m.sum, m.took, nil)
	}
	return more
}

func (m *measuring) add(q external.Evaluation, rows int) {
	weight := float64(q.Tokens)
	if q.Tokens == 0 {
		weight = float64(rows)
	}
	m.sum.Loss += float64(weight * q.Loss)
	m.sum.Tokens += q.Tokens
	m.sum.Bytes += q.Bytes
	m.weight += weight
}

// nextRows is how many rows a part should have after one of so many took so long.
func nextRows(rows int, took time.Duration) int {
	times := min(evalGrowth, evalPart.Seconds()/max(took.Seconds(), 1e-6))
	return min(max(1, int(float64(rows)*times)), external.MostRows)
}

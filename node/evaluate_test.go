package node

import (
	"testing"
	"time"

	"atoll/optimizer/trainer/external"
)

// Who is slow is not asked again, whatever program comes next; quality that is known stays.
func TestSlowEvaluation(t *testing.T) {
	n := newViewer()
	n.evaluated(external.Evaluation{Loss: 2, Tokens: 8}, 40, time.Second, nil)
	n.evaluated(external.Evaluation{}, 50, time.Minute, external.ErrSlowEvaluation)
	if e := n.lastEvent(); !n.evaluations.slow || n.evaluations.quality.Loss != 2 || e.Kind != "no evaluation" {
		t.Errorf("%+v, event %+v", n.evaluations, e)
	}
}

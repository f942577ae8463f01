package node

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
)

// A learner that takes long to start is told of: in the log, and to who watches before there is a run.
func TestSlowLearnerIsShown(t *testing.T) {
	var said strings.Builder
	var stages []string
	n := newNode(Config{
		Learner: "torch", Log: slog.New(slog.NewTextHandler(&said, nil)),
		OnStatus: func(s status.Snapshot) { stages = append(stages, s.Stage) },
	})
	if text := n.learnerStage(); text != "" {
		t.Errorf("before a start: %q", text)
	}
	n.learnerIsSlow(7 * time.Second)
	n.learnerIsSlow(14 * time.Second)
	for _, text := range append(stages, said.String(), n.learnerStage()) {
		if !strings.Contains(text, "waiting for the learner to start (7 s)") {
			t.Errorf("it says %q", text)
		}
	}
	if len(stages) != 2 || !strings.Contains(said.String(), "torch") {
		t.Errorf("stages %q, log %q", stages, said.String())
	}
	if n.learnerIsSlow(0); n.learnerStage() != "" {
		t.Errorf("after it: %q", n.learnerStage())
	}
}

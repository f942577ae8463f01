package node

import (
	"slices"
	"strings"
	"testing"

	"atoll/node/inspect"
	"atoll/node/inspect/ledgertest"
	"atoll/node/status"
)

// The doctor asks a node that runs, and leaves its folder alone.
func TestDoctorOfARunningNode(t *testing.T) {
	t.Parallel()
	m := launch(t, Config{Genesis: ledgertest.Genesis(1 << 24).Encode(), Data: toyText(t), Pace: slowPace})
	m.until("it contributes", contributes)
	c, err := inspect.Doctor(t.Context(), m.cfg.Dir, false, "")
	must(t, err)
	said := map[string]string{}
	for _, f := range c.Findings {
		said[f.Name] = f.Text
	}
	if !c.OK || !c.Running || !strings.Contains(said["peers"], "trains alone") || !strings.Contains(said["memory"], "of an estimated") {
		t.Errorf("%+v", c)
	}
	must(t, dialNode(t, m).Pause(t.Context(), true))
	m.until("it pauses", func(s status.Snapshot) bool { return len(s.Limits.Why) > 0 })
	c, err = inspect.Doctor(t.Context(), m.cfg.Dir, false, "")
	must(t, err)
	if i := slices.IndexFunc(c.Findings, func(f inspect.Finding) bool { return f.Name == "paused" }); c.OK || i < 0 || !strings.Contains(c.Findings[i].Remedy, "atoll resume") {
		t.Errorf("of one that is paused: %+v", c)
	}
	m.leave()
}

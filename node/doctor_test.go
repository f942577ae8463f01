package node

import (
	"strings"
	"testing"

	"atoll/node/inspect"
	"atoll/node/inspect/ledgertest"
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
	m.leave()
}

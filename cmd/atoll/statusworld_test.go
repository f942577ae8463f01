package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"atoll/node/status"
)

// A testnet's folder has a line for each of its nodes, whatever they left.
func TestStatusOfATestnet(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"", "node0", "node1", "node2"} {
		nodeFolder(t, filepath.Join(dir, name))
	}
	over, left := trainingStatus(), trainingStatus()
	over.Finished = true
	for name, s := range map[string]status.Snapshot{"node0": over, "node1": left} {
		b, err := json.Marshal(s)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name, status.FinalFile), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := typed(t, "status", dir)
	for _, want := range []string{`node0 +finished +750k \(25\.0 %\) +120 +250k +- +3434343434\n`, `node1 +stopped +750k`, `node2 +left no status\n`} {
		if code != exitDone || !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, stdout, stderr)
		}
	}
	if code, stdout, _ := typed(t, "status", dir, "--json"); code != exitDone || strings.Count(stdout, "\n") != 2 {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	if code, _, stderr := typed(t, "status", dir, "--watch"); code != exitUsage || !strings.Contains(stderr, "`atoll top ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

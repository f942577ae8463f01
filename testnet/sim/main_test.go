package sim

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	CollectLate()
	os.Exit(m.Run())
}

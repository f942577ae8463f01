package scenario

import (
	"os"
	"testing"

	"atoll/testnet/sim"
)

func TestMain(m *testing.M) {
	sim.CollectLate()
	os.Exit(m.Run())
}

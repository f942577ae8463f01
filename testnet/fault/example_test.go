package fault_test

import (
	"fmt"

	"atoll/testnet/fault"
)

// A schedule is read in both orders of its words and written in one.
func ExampleParse() {
	s, err := fault.Parse("kill 1 @20s, at 30s start 1, partition 0,1|2 @40s..80s")
	fmt.Println(s, err)
	// Output: kill 1 @20s, start 1 @30s, partition 0,1|2 @40s..1m20s <nil>
}

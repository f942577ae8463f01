package sim

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

func TestOne(t *testing.T) {
	seed, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	s := Explore(seed)
	fmt.Printf("%+v\n", s)
	r, err := Run(s)
	fmt.Println(err, r.Err)
	fmt.Println(r.Rounds, r.Loss)
}

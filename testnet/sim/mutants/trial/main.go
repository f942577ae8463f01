// Command trial runs worlds of the simulator until one breaks a promise, and
// prints which checker found it. Package mutants builds it over planted bugs.
//
//	trial NAME...   these trials, or all
//
// It exits with 0 if all promises were kept, 3 if one was broken, and with
// another code if it could not tell.
package main

import (
	"fmt"
	"os"
	"slices"
)

// exitCaught is the exit code of a broken promise.
const exitCaught = 3

func main() {
	for _, t := range trials() {
		if len(os.Args) > 1 && !slices.Contains(os.Args[1:], t.name) {
			continue
		}
		check, err := t.run()
		if check != "" {
			fmt.Printf("%s\t%s\t%v\n", check, t.name, err)
			os.Exit(exitCaught)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "trial %s: %v\n", t.name, err)
			os.Exit(1)
		}
	}
}

package documents

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Tally counts what reading did to files and documents, and what it left out, by words for people.
type Tally map[string]int64

// Words that others ask for.
const (
	Broken   = "broken documents left out"
	noText   = "null and empty documents left out"
	unpacked = "files unpacked"
)

// Add adds another tally.
func (t Tally) Add(u Tally) {
	for what, n := range u {
		t[what] += n
	}
}

// String is one line for people, "" if there is nothing to say.
func (t Tally) String() string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(t)) {
		all = append(all, fmt.Sprintf("%s: %d", what, t[what]))
	}
	return strings.Join(all, ", ")
}

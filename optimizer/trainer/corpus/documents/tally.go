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

	binaryFiles = "binary files"
	first       = ", the first of them " // behind what is counted: a path
)

// Add adds another tally.
func (t Tally) Add(u Tally) {
	for what, n := range u {
		t[what] += n
	}
}

// String is one line for people, "" if there is nothing to say.
func (t Tally) String() string {
	counts, paths := map[string]int64{}, map[string]string{}
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(t))) {
		what, path, named := strings.Cut(key, first)
		if counts[what] += t[key]; named {
			paths[what] = first + path
		}
	}
	var all []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s%s: %d", what, paths[what], counts[what]))
	}
	return strings.Join(all, ", ")
}

package main

import "atoll/cmd/atoll/internal/cli"

// elsewhere are the names that other programs have for what ours do.
var elsewhere = map[string]string{
	"start": "join", "run": "join", "train": "join", "up": "join", "serve": "join LINK --observe", "stop": "leave", "down": "leave",
	"init": "new", "create": "new", "ps": "peers", "ls": "status", "list": "status", "log": "logs", "info": "status", "chat": "generate", "config": "set", "configure": "set",
}

// neighbour is the error of a command that is another program's, with ours in its place; nil for others.
func neighbour(args []string) error {
	if len(args) == 0 || elsewhere[args[0]] == "" {
		return nil
	}
	return cli.BadUsage("atoll has no %s: type `atoll %s`", args[0], elsewhere[args[0]])
}

// mostSlips is how many slips of the hand a mistyped command may have: a key too many, one
// too few, a wrong one, or two in the wrong order.
const mostSlips = 2

// nearest is the name with the fewest slips, "" if all have too many or nothing is left of
// the word.
func nearest(word string, names []string) (best string) {
	least := min(mostSlips, len(word)-1) + 1
	for _, name := range names {
		if n := slips(word, name); n < least {
			best, least = name, n
		}
	}
	return best
}

// slips is the Damerau-Levenshtein distance of two words, in which no letter is moved twice.
func slips(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := last[j-1]
			if a[i-1] != b[j-1] {
				wrong++
			}
			row[j] = min(last[j]+1, row[j-1]+1, wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

package cli

// mostSlips is how many slips of the hand a mistyped command may have: a key too many, one
// too few, a wrong one, or two in the wrong order.
const mostSlips = 2

// Nearest is the name with the fewest slips, "" if all have too many or nothing is left of
// the word.
func Nearest(word string, names []string) (best string) {
	least := min(mostSlips, len(word)-1) + 1
	for _, name := range names {
		if n := Slips(word, name); n < least {
			best, least = name, n
		}
	}
	return best
}

// Slips is the Damerau-Levenshtein distance of two words, in which no letter is moved twice.
func Slips(a, b string) int {
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

package status

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Called is what every screen calls a machine: its label, its id where nobody here knows a name, or where it was met if not even
// that is known.
func (p Peer) Called() string {
	switch {
	case p.Label != "":
		return p.Label
	case p.ID == "":
		return p.Addr
	}
	return ShortID(p.ID)
}

// Label gives each machine its label: its name, and where two are called the same as many digits of the id as tell them apart. A name
// that is another's with such digits gets some of its own.
func Label(peers []Peer) {
	digits := make([]int, len(peers))
	for more := true; more; {
		alike := map[string][]int{}
		for i, p := range peers {
			if p.Name == "" || p.ID == "" {
				peers[i].Label = ""
				continue
			}
			peers[i].Label = p.Name
			if digits[i] > 0 {
				peers[i].Label += " " + p.ID[:min(digits[i], len(p.ID))]
			}
			key := strings.ToLower(peers[i].Label)
			alike[key] = append(alike[key], i)
		}
		more = false
		for _, same := range alike {
			others := slices.ContainsFunc(same, func(i int) bool { return peers[i].ID != peers[same[0]].ID })
			for _, i := range same {
				if others && digits[i] < len(peers[i].ID) {
					digits[i] += labelDigits
					more = true
				}
			}
		}
	}
}

// labelDigits are how many digits of an id a label has at first.
const labelDigits = 2

// Labels are what machines are called, by ShortID.
type Labels map[string]string

// LabelsOf are the labels of machines that have one.
func LabelsOf(peers []Peer) Labels {
	l := Labels{}
	for _, p := range peers {
		if p.Label != "" {
			l[ShortID(p.ID)] = p.Label
		}
	}
	return l
}

// Of is what a machine is called of which the id in hex is known, or enough of it.
func (l Labels) Of(id string) string {
	if label, ok := l[ShortID(id)]; ok {
		return label
	}
	return ShortID(id)
}

var idInText = regexp.MustCompile(fmt.Sprintf(`\b[0-9a-f]{%d}([0-9a-f]{%d})?\b`, shortID, 64-shortID))

// In is a text that calls machines by their ids, with their labels.
func (l Labels) In(text string) string {
	if len(l) == 0 {
		return text
	}
	return idInText.ReplaceAllStringFunc(text, func(id string) string {
		if label, ok := l[ShortID(id)]; ok {
			return label
		}
		return id
	})
}

// fewDigits are too few of an id to mean one where a machine is called so.
const fewDigits = 4

// Meant are the machines that a person means by a word: the label, the name, or the first digits of the id. More than one is a choice to
// offer.
func Meant(peers []Peer, word string) (found []Peer) {
	named := func(p Peer) bool { return strings.EqualFold(p.Label, word) || strings.EqualFold(p.Name, word) }
	digits := len(word) >= fewDigits || !slices.ContainsFunc(peers, named)
	for _, p := range peers {
		called := named(p) || digits && strings.HasPrefix(p.ID, strings.ToLower(word))
		if word != "" && p.ID != "" && called && !slices.ContainsFunc(found, func(f Peer) bool { return f.ID == p.ID }) {
			found = append(found, p)
		}
	}
	return found
}

// ErrNobody says that a word means none of the machines.
var ErrNobody = errors.New("is no machine that is known here")

// One is the id, in hex, of the machine that a person means by a word: ErrNobody, or an error that offers the choice, where that is not one.
func One(peers []Peer, word string) (id string, err error) {
	switch found := Meant(peers, word); len(found) {
	case 0:
		return "", fmt.Errorf("%q %w", word, ErrNobody)
	case 1:
		return found[0].ID, nil
	default:
		return "", fmt.Errorf("%q may be any of %s: type the id of one, or more digits of it", word, Choices(found))
	}
}

// NameAndID is a machine where a person has to be sure which one it is.
func (p Peer) NameAndID() string {
	if p.Label == "" {
		return ShortID(p.ID)
	}
	return p.Label + " (" + ShortID(p.ID) + ")"
}

// Choices are machines to choose from.
func Choices(peers []Peer) string {
	var all []string
	for _, p := range peers {
		all = append(all, p.NameAndID())
	}
	return strings.Join(all, ", ")
}

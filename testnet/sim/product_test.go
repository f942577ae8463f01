package sim

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"atoll/optimizer/outer"
)

// unlikeRuns are the fields of outer.Params in which a world may differ from what the maker of runs writes: sizes and times,
// as worlds are small and short.
var unlikeRuns = []string{"HMin", "WindowAccept", "WindowUnion", "MinRoundMs", "GraceMinMs", "GraceMaxMs"}

// mostPlanned bounds the learners that a world may have been made for.
const mostPlanned = 2 * exploreMost

// differences are the fields in which parameters differ from those of every run that could have been made with what was chosen.
func differences(p outer.Params, nodes int) (fields []string) {
	for learners := range max(mostPlanned, nodes+1) {
		made := outer.Spec{
			Fragments: p.Fragments, Codec: p.Codec, H: p.H, LearnersPerRound: p.LearnersPerRound, Learners: learners, StepTokens: TokensPerStep,
			Budget: p.Budget, CreatedMs: p.CreatedMs, OwnText: p.OwnText,
		}.Params()
		var now []string
		a, b := reflect.ValueOf(p), reflect.ValueOf(made)
		for i := range a.NumField() {
			if !a.Field(i).Equal(b.Field(i)) {
				now = append(now, a.Type().Field(i).Name)
			}
		}
		now = slices.DeleteFunc(now, func(name string) bool { return slices.Contains(unlikeRuns, name) })
		if learners == 0 || len(now) < len(fields) {
			fields = now
		}
		if len(now) == 0 {
			return nil
		}
	}
	return fields
}

// Worlds play the rules of runs that people can make, but for what is named.
func TestWorldsPlayTheProduct(t *testing.T) {
	check := func(what string, s Scenario) {
		t.Helper()
		if fields := differences(s.withDefaults().Params, len(s.Founders)); len(fields) > 0 {
			t.Errorf("%s differs from what the maker writes in %v", what, fields)
		}
	}
	for seed := range uint64(1000) {
		check("Explore", Explore(seed))
		check("ExploreThin", ExploreThin(seed))
	}
	check("Small", Small(2, 10, nil, 1))
	check("Large", Large(1000, 5, 1))
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		check(file, stored(t, file))
	}
}

// Explore draws what people can choose: two and three nodes a third of the time, own texts, open runs, guests, liars
// and revocations, together.
func TestExploreDrawsWhatPeopleChoose(t *testing.T) {
	const seeds = 3000
	var few, open, own, guests, liars, revoked, momentum, company int
	for seed := range uint64(seeds) {
		s := Explore(seed)
		members, lies := 0, false
		for _, n := range s.Founders {
			if !n.Guest {
				members++
			}
			lies = lies || n.Attack.Kind != ""
		}
		hosted, sacked := members < len(s.Founders), false
		for _, f := range s.Faults {
			hosted, sacked = hosted || f.Spec.Guest, sacked || f.Kind == "revoke"
		}
		few += is(members <= 3)
		open, own, momentum = open+is(s.Open), own+is(s.Params.OwnText), momentum+is(s.Params.Mu > 0)
		guests, liars, revoked = guests+is(hosted), liars+is(lies), revoked+is(sacked)
		company += is(hosted && lies)
	}
	t.Logf("few %d open %d own %d guests %d liars %d revoked %d momentum %d guests and liars %d of %d", few, open, own, guests, liars, revoked, momentum, company, seeds)
	for what, n := range map[string][2]int{
		"two or three": {few, seeds / 4}, "open": {open, seeds / 12}, "own text": {own, seeds / 10}, "guests": {guests, seeds / 10}, "liars": {liars, seeds / 6},
		"revocations": {revoked, seeds / 20}, "momentum": {momentum, seeds / 3}, "guests and liars": {company, seeds / 50},
	} {
		if n[0] < n[1] {
			t.Errorf("%s: %d of %d worlds, want %d at least", what, n[0], seeds, n[1])
		}
	}
}

func is(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Group is the trials of one setting.
type Group struct {
	Setting Setting
	Trials  []Trial // that came to an end, by seed
	Failed  int
}

// Groups collects trials by setting, in the order in which settings first come.
// A trial that comes twice counts once.
func Groups(trials []Trial) []*Group {
	var groups []*Group
	at := map[Setting]*Group{}
	seen := map[Entry]bool{}
	for _, t := range trials {
		e := Entry{t.Setting, t.Seed}
		if seen[e] {
			continue
		}
		seen[e] = true
		g := at[t.Setting]
		if g == nil {
			g = &Group{Setting: t.Setting}
			at[t.Setting], groups = g, append(groups, g)
		}
		if t.Failed != "" {
			g.Failed++
			continue
		}
		g.Trials = append(g.Trials, t)
	}
	for _, g := range groups {
		slices.SortFunc(g.Trials, func(a, b Trial) int { return cmp.Compare(a.Seed, b.Seed) })
	}
	return groups
}

// bySeed is the quality of each trial.
func (g *Group) bySeed() map[uint64]float64 {
	m := map[uint64]float64{}
	for _, t := range g.Trials {
		m[t.Seed] = t.ValBPB
	}
	return m
}

func seedsOf(m map[uint64]float64) []uint64 { return slices.Sorted(maps.Keys(m)) }

// mean of a quantity over the trials.
func (g *Group) mean(of func(Trial) float64) float64 { return g.describe(of).Mean }

func (g *Group) describe(of func(Trial) float64) Stat {
	x := make([]float64, len(g.Trials))
	for i, t := range g.Trials {
		x[i] = of(t)
	}
	return Describe(x)
}

func bpb(t Trial) float64     { return t.ValBPB }
func payload(t Trial) float64 { return t.PayloadPerToken }

// Filter selects settings: each of its fields must have one of the given values.
type Filter map[string][]string

// ParseFilter reads NAME=VALUE, with commas between; a name may come again.
func ParseFilter(text string) (Filter, error) {
	f := Filter{}
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			continue
		}
		name, value, ok := strings.Cut(word, "=")
		if !ok || !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("%q is no NAME=VALUE of a setting; the names are %s", word, strings.Join(Names(), ", "))
		}
		f[name] = append(f[name], value)
	}
	return f, nil
}

// Match says whether a setting passes.
func (f Filter) Match(s Setting) bool {
	for name, values := range f {
		if !slices.Contains(values, s.Get(name)) {
			return false
		}
	}
	return true
}

// Select are the groups that pass.
func (f Filter) Select(groups []*Group) []*Group {
	return slices.DeleteFunc(slices.Clone(groups), func(g *Group) bool { return !f.Match(g.Setting) })
}

// ParseNames reads names of settings, with commas between.
func ParseNames(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	names := strings.Split(text, ",")
	for _, n := range names {
		if !slices.Contains(Names(), n) {
			return nil, fmt.Errorf("there is no setting %q; use some of %s", n, strings.Join(Names(), ", "))
		}
	}
	return names, nil
}

// Best returns the group with the lowest mean among those that ref selects and
// that have the values of like in the fields named same. It returns nil if there
// is none.
func Best(groups []*Group, ref Filter, same []string, like Setting) *Group {
	var best *Group
	for _, g := range ref.Select(groups) {
		alike := !slices.ContainsFunc(same, func(n string) bool { return g.Setting.Get(n) != like.Get(n) })
		if alike && len(g.Trials) > 0 && (best == nil || g.mean(bpb) < best.mean(bpb)) {
			best = g
		}
	}
	return best
}

// overBudget is by how much folded tokens may differ from the budget for a fair
// comparison.
const overBudget = 0.01

// Table shows a row for each group of shown in Markdown. With ref, the difference is
// that to Best of all groups.
func Table(shown, all []*Group, ref Filter, same []string) string {
	vary := varying(shown)
	head := append(slices.Clone(vary), "seeds", "bits per byte", "sd", "difference %", "payload bytes per token", "rounds", "stale")
	var b strings.Builder
	row(&b, head)
	row(&b, slices.Repeat([]string{"---"}, len(head)))
	for _, g := range shown {
		cells := make([]string, 0, len(head))
		for _, name := range vary {
			cells = append(cells, g.Setting.shown(name))
		}
		var best *Group
		if ref != nil {
			best = Best(all, ref, same, g.Setting)
		}
		row(&b, append(cells, g.cells(best)...))
	}
	return b.String()
}

func row(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// cells are the figures of a row, and the difference to ref unless that is nil.
func (g *Group) cells(ref *Group) []string {
	n := fmt.Sprint(len(g.Trials))
	if g.Failed > 0 {
		n += fmt.Sprintf(", %d failed", g.Failed)
	}
	if len(g.Trials) == 0 {
		return []string{n, "-", "-", "-", "-", "-", "-"}
	}
	q := g.describe(bpb)
	mark := ""
	if over := g.mean(func(t Trial) float64 { return float64(t.Folded)/float64(t.Setting.Tokens) - 1 }); math.Abs(over) > overBudget {
		mark = fmt.Sprintf(" (%+.1f %% tokens)", 100*over)
	}
	return []string{
		n, fmt.Sprintf("%.4f%s", q.Mean, mark), fmt.Sprintf("%.4f", q.SD), difference(g, ref),
		fmt.Sprintf("%.1f", g.mean(payload)), fmt.Sprintf("%.0f", g.mean(func(t Trial) float64 { return float64(t.Rounds) })),
		fmt.Sprintf("%.2f", g.mean(func(t Trial) float64 { return t.Stale })),
	}
}

// difference is the difference over the seeds that both groups have, with its
// interval.
func difference(g, ref *Group) string {
	switch ref {
	case nil:
		return "-"
	case g:
		return "reference"
	}
	d := Paired(g.bySeed(), ref.bySeed())
	switch d.N {
	case 0:
		return "no seed in common"
	case 1:
		return fmt.Sprintf("%+.2f", d.Mean)
	}
	return fmt.Sprintf("%+.2f ± %.2f", d.Mean, d.HalfWidth())
}

// varying are the names of the fields that are not the same everywhere.
func varying(groups []*Group) []string {
	return slices.DeleteFunc(Names(), func(name string) bool {
		for _, g := range groups {
			if g.Setting.Get(name) != groups[0].Setting.Get(name) {
				return false
			}
		}
		return true
	})
}

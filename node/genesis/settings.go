package genesis

import (
	"fmt"
	"time"
)

// Settings are what the run's makers chose, as pairs of a name and a value for people.
func (g Genesis) Settings() [][2]string {
	rows := [][2]string{
		{"made", time.UnixMilli(g.Outer.CreatedMs).UTC().Format(time.DateTime) + " UTC"},
		{"admission", g.Admission()},
		{"model", g.ModelLabel()},
		{"parameters", fmt.Sprint(g.Params())},
	}
	if m := g.Model; g.BuiltIn() {
		rows = append(rows, [2]string{"layers", fmt.Sprint(m.Layers)}, [2]string{"width", fmt.Sprint(m.Hidden)}, [2]string{"heads", fmt.Sprintf("%d, %d for keys and values", m.Heads, m.KVHeads)},
			[2]string{"feed-forward width", fmt.Sprint(m.Intermediate)}, [2]string{"context", fmt.Sprintf("%d tokens", m.Context)}, [2]string{"vocabulary", fmt.Sprint(m.Vocab)})
	}
	p := g.OuterParams()
	return append(rows, [][2]string{
		{"tokenizer", g.Tokenizer()},
		{"text", g.textLabel()},
		{"budget", fmt.Sprintf("%d tokens", g.Outer.Budget)},
		{"batch", fmt.Sprintf("%d rows", g.Batch)},
		{"inner optimizer", fmt.Sprintf("%s, peak rate %v, weight decay %v", g.Inner.Optimizer, g.Inner.LR, g.Inner.Optim().AdamW.WeightDecay)},
		{"rate", fmt.Sprintf("warms up for %v of the budget, ends at %v of the peak", warmup, finalRate)},
		{"steps of a delta", fmt.Sprint(g.Outer.H)},
		{"fragments", fmt.Sprint(g.Outer.Fragments)},
		{"codec", g.Outer.Codec.String()},
		{"outer rate and momentum", fmt.Sprintf("%v, %v", p.Eta, p.Mu)},
		{"union window", fmt.Sprintf("%d rounds", g.Outer.Window)},
		{"seed", fmt.Sprint(g.Seed)},
	}...)
}

package main

import (
	"fmt"

	"atoll/optimizer/outer"
	"atoll/optimizer/outer/tune"
)

// created is the answer of `atoll new`.
type created struct {
	Run       string      `json:"run"`
	Name      string      `json:"name"`
	Genesis   string      `json:"genesis"`         // path
	Owner     string      `json:"owner,omitempty"` // path of the owner's key, in a run that admits by invitation
	Params    int         `json:"params"`
	Fragments int         `json:"fragments"`
	Optimizer string      `json:"optimizer"`
	LR        float64     `json:"learning_rate"` // peak
	H         int         `json:"h"`             // this and the codec also where links did not choose them
	Codec     string      `json:"codec"`
	Merge     string      `json:"merge"`
	Budget    uint64      `json:"budget_tokens"`
	Length    tune.Length `json:"length"`
	Data      string      `json:"data"`
	SHA256    string      `json:"data_sha256"`
	Expected  *expected   `json:"expected,omitempty"` // of --bandwidth
	Sizes     sizes       `json:"sizes"`
	Next      string      `json:"next"` // what to type
}

// robustness says what each merge makes of liars (optimizer/outer/DESIGN.md).
var robustness = map[string]string{
	outer.MergeRDA:  "which withstands one liar of eight and not two",
	outer.MergeMean: "which does not withstand liars; --merge clip does",
	outer.MergeClip: "which withstands two liars of eight",
}

func (a created) print(out *console) error {
	rows := [][]string{
		{"run", a.Run},
		{"name", a.Name},
		{"genesis", a.Genesis},
		{"admission", admissionText(a.Owner)},
		{"model", fmt.Sprintf("%s parameters in %s", big(float64(a.Params)), plural(a.Fragments, "fragment", "fragments"))},
		{"training", fmt.Sprintf("%s, peak learning rate %v", a.Optimizer, a.LR)},
		{"rounds", fmt.Sprintf("every %s%s, %s", plural(a.H, "step", "steps"), a.Expected.pace(), a.Codec)},
		{"merge", fmt.Sprintf("%s, %s", a.Merge, robustness[a.Merge])},
		{"budget", fmt.Sprintf("%s tokens: %s times the text to train on", big(float64(a.Budget)), twoDigits(a.Length.Passes))},
		lengthRow(a.Length),
		{"data", a.Data + dataHash(a.SHA256)},
	}
	if a.Length.Worn() {
		rows = append(rows, []string{"text", wornText(a.Length, a.Budget)})
	}
	if a.Expected != nil {
		rows = append(rows, a.Expected.rows()...)
	}
	if cost := codecCost(a.Codec, a.H, a.Expected); cost != "" {
		rows = append(rows, []string{"codec", a.Codec + ": " + cost})
	}
	rows = append(rows, a.Sizes.rows()...)
	err := table(out.out, rows...)
	out.answer("\nStart it on the first machine with\n\n    %s\n\nIt prints the join link for all others.", a.Next)
	return err
}

// wornText warns of a text that is read too often, and says what to do.
func wornText(l tune.Length, budget uint64) string {
	need := float64(budget) / tune.ManyPasses
	return fmt.Sprintf("WARNING: read %s times over. After some %d times a text brings nothing more, and the model learns it by heart. Pass %s or more with --data, or use a smaller model", twoDigits(l.Passes), tune.ManyPasses, textOf(need))
}

// textOf is an amount of text in tokens.
func textOf(tokens float64) string { return big(tune.RoundUp(tokens, 2)) + " tokens of text" }

// admissionText says who may contribute.
func admissionText(owner string) string {
	if owner == "" {
		return "open: whoever has the RunID contributes, and any stranger can destroy the run"
	}
	return fmt.Sprintf("by invitation; %s is the owner's key, which makes invites: keep it private", owner)
}

// dataHash says which text may be trained on; "" is any.
func dataHash(sha256 string) string {
	if sha256 == "" {
		return ""
	}
	return fmt.Sprintf(", sha256 %.16s: nodes refuse to train on another text", sha256)
}

package main

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/genesis"
	"atoll/node/hardware"
	"atoll/node/status"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/tune"
	"atoll/tensor/codec"
)

// created is what atoll new made.
type created struct {
	Run       string      `json:"run"`
	Name      string      `json:"name"`
	Genesis   string      `json:"genesis"`                     // path
	Owner     string      `json:"owner,omitempty"`             // path of the owner's key, in a run that admits by invitation
	Uses      uint32      `json:"invite_uses,omitempty"`       // nodes that the first node's link is for
	Expires   int64       `json:"invite_expires_ms,omitempty"` // Unix ms after which it lets nobody new in
	Params    int         `json:"params"`
	Fragments int         `json:"fragments"`
	Context   int         `json:"context"`
	Optimizer string      `json:"optimizer"`
	LR        float64     `json:"learning_rate"` // peak
	H         int         `json:"h"`             // this and the codec also where links did not choose them
	Codec     string      `json:"codec"`
	Budget    uint64      `json:"budget_tokens"`
	Length    tune.Length `json:"length,omitzero"` // where it is known how long the text is
	Data      string      `json:"data"`
	SHA256    string      `json:"data_sha256"`
	Expected  *expected   `json:"expected,omitempty"` // of --bandwidth
	Sizes     sizes       `json:"sizes"`

	// The model that --from names.
	Tensors    int      `json:"tensors,omitempty"`
	Files      []string `json:"files,omitempty"`       // beside its weights, which exports have as well
	Notes      []string `json:"notes,omitempty"`       // which tensors are not trained, and what learners need
	Base       string   `json:"base,omitempty"`        // model that adapters belong to: its folder, or its name
	BaseSHA256 string   `json:"base_sha256,omitempty"` // digest of its weights, if they are here

	Next string `json:"next"` // what to type
}

// answer is what there is to say of a run that was made.
func (c *NewCmd) answer(g genesis.Genesis, s genesis.Spec, e genesis.Expected) created {
	id := g.RunID()
	a := created{
		Run: hex.EncodeToString(id[:]), Name: g.Name, Params: g.Params(), Fragments: g.Outer.Fragments, Context: g.Model.Context,
		Optimizer: g.Inner.Optimizer, LR: g.Inner.LR, H: g.Outer.H, Codec: g.Outer.Codec.String(),
		Budget: g.Outer.Budget, Length: e.Length, Data: g.Data.Name, SHA256: g.Data.SHA256, Sizes: sizesOf(g, e),
		Tensors: len(g.Layout), Expected: c.expected(g, s, e),
	}
	if s.From != nil {
		a.Notes = s.From.Notes
		for _, f := range g.Files {
			a.Files = append(a.Files, f.Name)
		}
	}
	return a
}

func (a created) print(out *cli.Console) error {
	model := fmt.Sprintf("%s parameters in %s", status.Count(float64(a.Params)), cli.Plural(a.Fragments, "fragment", "fragments"))
	if a.Tensors > 0 {
		model += fmt.Sprintf(" of %s; rows of %d tokens", cli.Plural(a.Tensors, "tensor", "tensors"), a.Context)
	}
	rows := [][]string{
		{"run", a.Run},
		{"name", a.Name},
		{"genesis", a.Genesis},
		{"admission", a.admissionText()},
		{"link", a.linkText()},
		{"model", model},
		{"training", fmt.Sprintf("%s, peak learning rate %v", a.Optimizer, a.LR)},
		{"rounds", fmt.Sprintf("every %s%s, %s", cli.Plural(a.H, "step", "steps"), a.Expected.pace(), a.Codec)},
	}
	rows = append(rows, a.lengthRows()...)
	if a.Expected != nil {
		rows = append(rows, a.Expected.rows()...)
	}
	if cost := codecCost(a.Codec, a.H, a.Expected); cost != "" {
		rows = append(rows, []string{"codec", a.Codec + ": " + cost})
	}
	rows = append(append(rows, a.Sizes.rows(a.H)...), a.fromRows()...)
	err := cli.Table(out.Out, rows...)
	out.Answer("\nStart it on the first machine with\n\n    %s\n\nIt prints the join link for all others.", a.Next)
	return err
}

// lengthRows say what the run trains on, and how long.
func (a created) lengthRows() [][]string {
	if a.Length == (tune.Length{}) {
		data := "each learner's own"
		if a.Data != "" {
			data = a.Data + dataHash(a.SHA256)
		}
		return [][]string{{"budget", status.Count(float64(a.Budget)) + " tokens"}, {"data", data}}
	}
	rows := [][]string{
		{"budget", fmt.Sprintf("%s tokens: %s times the text to train on", status.Count(float64(a.Budget)), twoDigits(a.Length.Passes))},
		lengthRow(a.Length),
		{"data", a.Data + dataHash(a.SHA256)},
	}
	if a.Length.Worn() {
		rows = append(rows, []string{"text", wornText(a.Length, a.Budget)})
	}
	return rows
}

// fromRows say what of the model that --from names the run trains.
func (a created) fromRows() (rows [][]string) {
	if a.BaseSHA256 != "" {
		rows = append(rows, []string{"base", fmt.Sprintf("%s, weights %s: learners refuse another", a.Base, status.ShortID(a.BaseSHA256))})
	} else if a.Base != "" {
		rows = append(rows, []string{"base", fmt.Sprintf("%s, which is no folder here: the recipe names no weights, so that nobody sees a learner with others; --base DIR names them", a.Base)})
	}
	if a.Tensors > 0 {
		rows = append(rows, []string{"files", cmp.Or(strings.Join(a.Files, ", "), "none beside the weights: exports will have no tokenizer")})
	}
	for _, note := range a.Notes {
		rows = append(rows, []string{"note", note})
	}
	return rows
}

// wornText warns of a text that is read too often, and says what to do.
func wornText(l tune.Length, budget uint64) string {
	need := float64(budget) / tune.ManyPasses
	return fmt.Sprintf("WARNING: read %s times over. After some %d times a text brings nothing more, and the model learns it by heart. Pass %s or more with --data, or use a smaller model", twoDigits(l.Passes), tune.ManyPasses, textOf(need))
}

// textOf is an amount of text in tokens.
func textOf(tokens float64) string { return status.Count(tune.RoundUp(tokens, 2)) + " tokens of text" }

// admissionText says who may contribute.
func (a created) admissionText() string {
	if a.Owner == "" {
		return "open: whoever has the RunID contributes, and any stranger can destroy the run"
	}
	return fmt.Sprintf("by invitation; %s is the owner's key, which makes invites: keep it private", a.Owner)
}

// linkText says whom the first node's link lets in.
func (a created) linkText() string {
	switch until := time.UnixMilli(a.Expires).Format(time.DateOnly); {
	case a.Owner == "":
		return "lets in everybody"
	case a.Uses == 0:
		return fmt.Sprintf("the first node's lets in any number of machines until %s", until)
	default:
		return fmt.Sprintf("the first node's is for %s until %s", cli.Plural(int(a.Uses), "machine", "machines"), until)
	}
}

// dataHash says which text may be trained on; "" is any.
func dataHash(sha256 string) string {
	if sha256 == "" {
		return ""
	}
	return fmt.Sprintf(", sha256 %.16s: nodes refuse to train on another text", sha256)
}

// expected is what `atoll new --bandwidth` chose, and what a run will take.
type expected struct {
	H                int     `json:"h"`
	Fragments        int     `json:"fragments"`
	Codec            string  `json:"codec"`
	Learners         int     `json:"learners"`
	StepSeconds      float64 `json:"step_s"`
	Measured         bool    `json:"step_measured"` // here, not given
	LinkMbitPerS     float64 `json:"link_mbit_per_s"`
	MbitPerS         float64 `json:"payload_mbit_per_s"` // that a node receives, and about as much sends
	LinkShare        float64 `json:"link_share"`
	SweepSeconds     float64 `json:"sweep_s"`                      // in which the whole link carries what a node receives in H steps
	LearnersPerRound int     `json:"learners_per_round,omitempty"` // where they are fewer than without --bandwidth
	CoreShare        float64 `json:"core_share"`                   // of one core, for the outer steps
	Int4MbitPerS     float64 `json:"int4_mbit_per_s,omitempty"`    // that links would have to carry, where they do not
}

// costs say what the codecs cost that are chosen where links do not carry int4 (optimizer/outer/DESIGN.md).
var costs = map[string]string{
	codec.Sparse8.String(): "a quarter of the bytes of int4 at the same H, for 1 to 4 % more bits per byte; a larger H costs more",
	codec.Sparse.String():  "a twentieth of the bytes of int4 at the same H, for 3 to 11 % more bits per byte; a larger H costs more",
}

// expected is what the links of a run chose; nil where nobody described them.
func (c *NewCmd) expected(g genesis.Genesis, s genesis.Spec, e genesis.Expected) *expected {
	l := e.Links
	if l == nil {
		return nil
	}
	x := &expected{
		H: l.H, Fragments: g.Outer.Fragments, Codec: l.Codec.String(), Learners: s.Learners, StepSeconds: s.Links.StepSeconds, Measured: c.Step == 0,
		LinkMbitPerS: float64(c.Bandwidth) / 1e6, MbitPerS: l.BytesPerSecond * 8 / 1e6, LinkShare: l.LinkShare, SweepSeconds: l.SweepSeconds,
		CoreShare: l.CoreShare, Int4MbitPerS: e.Int4Bytes * 8 / 1e6,
	}
	if usual := s.LearnersPerRound; l.LearnersPerRound != usual && !(usual == 0 && l.LearnersPerRound == outer.UsualLearnersPerRound) {
		x.LearnersPerRound = l.LearnersPerRound
	}
	return x
}

// pace says how long a step takes, "" where nothing is expected.
func (e *expected) pace() string {
	if e == nil {
		return ""
	}
	how := "as given"
	if e.Measured {
		how = "measured here; --step sets it"
	}
	step, unit := time.Duration(e.StepSeconds*float64(time.Second)), 10*time.Microsecond
	if step > time.Second {
		unit = 10 * time.Millisecond
	}
	return fmt.Sprintf(" of %v (%s)", step.Round(unit), how)
}

// manyCores is the share of a core from which on it has to be free beside what trains.
const manyCores = 0.1

// rows say what links and cores will carry.
func (e *expected) rows() (rows [][]string) {
	text := fmt.Sprintf("%s: each receives and sends %s Mbit/s of payloads, %.0f %% of %s Mbit/s; outer steps take %.1f %% of a core",
		cli.Plural(e.Learners, "learner", "learners"), plain(toTwoDigits(e.MbitPerS)), 100*e.LinkShare, plain(e.LinkMbitPerS), 100*e.CoreShare)
	if e.CoreShare > manyCores {
		text += ", which has to be free: training on it would lose as much"
	}
	rows = append(rows, []string{"links", text})
	if e.LearnersPerRound > 0 {
		rows = append(rows, []string{"learners per round", fmt.Sprintf("%d of %s, as links or cores carry no more: they rotate, and a round averages fewer deltas, each of more steps", e.LearnersPerRound, cli.Plural(e.Learners, "learner", "learners"))})
	}
	return rows
}

// plain writes a number with all its digits and no exponent.
func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// toTwoDigits is the number of two digits that is nearest to x.
func toTwoDigits(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64) // it reads what it wrote
	return y
}

// codecCost says what a sparse codec costs every h steps, and with which links another is better; "" for the others.
func codecCost(name string, h int, e *expected) string {
	if name == codec.Sparse.String() && h > outer.MostSparseH {
		return fmt.Sprintf("with H above %d, four learners did worse than one alone; use a smaller --h", outer.MostSparseH)
	}
	text := costs[name]
	if e != nil && e.Int4MbitPerS > 0 {
		text += fmt.Sprintf("; with links of %s Mbit/s or more, int4 is better", plain(tune.RoundUp(e.Int4MbitPerS, 2)))
	}
	return text
}

// lengthRow says so, and what to do about a run that is short.
func lengthRow(l tune.Length) []string {
	text := fmt.Sprintf("%s of each of %s, %s, %s tokens a parameter", cli.Plural(l.Steps, "step", "steps"),
		cli.Plural(l.Learners, "learner", "learners"), cli.Plural(l.Rounds, "round of each fragment", "rounds of each fragment"), twoDigits(l.PerParam))
	if l.Short {
		text += fmt.Sprintf(": short (%s). Four learners in such runs came out more than 2 %% behind data parallelism. Use --tokens %s or more", lacking(l), short(l.Least))
	}
	if l.SmallerH {
		text += "; a smaller --h helps as well and takes more bandwidth"
	}
	return []string{"length", text}
}

// lacking says what makes a run of several learners short.
func lacking(l tune.Length) string {
	var few []string
	if l.FewRounds() {
		few = append(few, fmt.Sprintf("fewer than %d rounds", tune.EnoughRounds))
	}
	if l.FewTokens() {
		few = append(few, fmt.Sprintf("fewer than %d tokens a parameter", tune.EnoughTokens))
	}
	return strings.Join(few, ", ")
}

// short writes a number of 10 and more with two digits as one would type it: 1.5e7.
func short(x float64) string {
	mantissa, exponent, _ := strings.Cut(fmt.Sprintf("%.1e", x), "e+")
	return mantissa + "e" + strings.TrimLeft(exponent, "0")
}

// twoDigits writes a number of any size that way, and a large one no larger than it is: 0.00093, 3.6, 120.
func twoDigits(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", math.Floor(x))
	}
	return fmt.Sprintf("%.2g", x)
}

// sizes are what a run will take of a node, estimated.
type sizes struct {
	RoundBytes     float64 `json:"round_bytes"`     // of the deltas of one round of all fragments
	WindowRounds   uint32  `json:"window_rounds"`   // of the union window
	WindowBytes    float64 `json:"window_bytes"`    // of their deltas
	GraceMs        int64   `json:"grace_ms"`        // that a round may stay open
	MemoryBytes    uint64  `json:"memory_bytes"`    // of a node, with the built-in trainer where that can train the run
	ExternalMemory uint64  `json:"external_memory"` // of a node, beside a learner in a process of its own
	BasesBytes     float64 `json:"bases_bytes"`     // of kept states on the disk
	LearnerBytes   float64 `json:"learner_bytes"`   // of the learner's state on the disk
	BuiltIn        bool    `json:"-"`
	Received       float64 `json:"received_bytes"` // by each node, in a round of all fragments
}

// sizesOf says what a run takes.
func sizesOf(g genesis.Genesis, e genesis.Expected) sizes {
	deltas := e.RoundBytes / (float64(g.Params()) * tune.BytesOf(g.Outer.Codec))
	disk := hardware.Role{External: !g.BuiltIn()}.DiskOf(g)
	return sizes{
		RoundBytes: e.RoundBytes, WindowRounds: g.Outer.Window, WindowBytes: e.RoundBytes * float64(g.Outer.Window), GraceMs: g.OuterParams().GraceMaxMs,
		MemoryBytes: hardware.Role{}.Need(g), ExternalMemory: hardware.Role{External: true}.Need(g), BuiltIn: g.BuiltIn(),
		BasesBytes: float64(disk.Bases), LearnerBytes: float64(disk.Learner), Received: e.RoundBytes * (deltas - 1) / deltas,
	}
}

// rows say them of a run of this H.
func (s sizes) rows(h int) [][]string {
	memory := fmt.Sprintf("about %s for a node, beside its learner", status.Bytes(float64(s.ExternalMemory)))
	if s.BuiltIn {
		memory = fmt.Sprintf("about %s for a node that trains itself, %s beside a learner of another program", status.Bytes(float64(s.MemoryBytes)), status.Bytes(float64(s.ExternalMemory)))
	}
	return [][]string{
		{"traffic", fmt.Sprintf("each node receives about %s per %s (one round of each fragment), and sends as much; a round stays open for %s at most", status.Traffic(s.Received), cli.Plural(h, "step", "steps"), cli.Seconds(float64(s.GraceMs)/1000))},
		{"memory", memory},
		{"disk", fmt.Sprintf("%s of deltas of the union window (the last %d rounds), %s of kept states, %s of the learner's; what is older goes by --keep of atoll join",
			status.Bytes(s.WindowBytes), s.WindowRounds, status.Bytes(s.BasesBytes), status.Bytes(s.LearnerBytes))},
	}
}

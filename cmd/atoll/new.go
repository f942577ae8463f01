package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"atoll/node/genesis"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/tune"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor/codec"
)

const newHelp = `
A genesis file describes a run: model, hyper-parameters, token budget, text, everything that its nodes must agree on. It never changes, and its hash is the RunID. The first machine joins with the file and prints a link. All others join with the link.

    atoll new --name opticks --out opticks.genesis
    atoll join --genesis opticks.genesis --dir first
    atoll join LINK          on every other machine, with the link that the first one shows

H, the steps between two deltas, decides how good the model becomes and how many bytes travel (optimizer/outer/DESIGN.md). --bandwidth chooses it to suit the links:

    atoll new --model small --bandwidth 20mbit --learners 8

Flags can come from a file, with atoll --config run.toml new:

    [new]
    name = "opticks"
    model = "small"
    tokens = 20e6

A model of other sizes is a JSON file: {"vocab":256,"hidden":192,"layers":6,"heads":6,"kvheads":2,"intermediate":512,"context":256}`

// NewCmd is `atoll new`.
type NewCmd struct {
	Name string `help:"What people call the run. Default: the model's name." placeholder:"TEXT"`
	runFlags
	Tokens    *amount       `help:"Budget: the run ends when so many tokens are folded into the model. Default: the fewest with which a run of --learners is not short." placeholder:"N"`
	Answerers int           `help:"Learners that contribute to one round. If the run has more, they rotate. What a node receives and folds grows with this number. Default: 16." placeholder:"N"`
	Bandwidth rate          `help:"What each node's link carries each way, such as 20mbit. Chooses H, the fragments and the codec, and says what to expect." placeholder:"RATE"`
	Learners  int           `help:"Learners that the run expects. --bandwidth, the default of --tokens and the steps that one delta may have follow from it. Default: 4." default:"4" placeholder:"N"`
	Step      time.Duration `help:"Time of one step of a usual learner, for --bandwidth. Default: measured on this machine." placeholder:"500ms"`
	Profile   string        `help:"Network between the nodes, which sets the times of beats and rounds: ${enum}." enum:"local,lan,wan" default:"wan"`
	Data      string        `help:"Text of the run: a file, a folder, or goroot for the Go code that ships with Go. Nodes refuse to train on any other. Default: Newton's Opticks, which ships with Go." placeholder:"PATH"`
	OwnData   bool          `help:"Let each learner train on a text of its own. --data is then this machine's text, and its hash is not recorded."`
	Out       string        `help:"File to write the genesis to. Default: NAME.genesis." placeholder:"FILE"`
	JSON      bool          `name:"json" help:"Answer with one JSON object."`
}

// Help implements kong.HelpProvider.
func (*NewCmd) Help() string { return newHelp }

// created is the answer of `atoll new`.
type created struct {
	Run       string      `json:"run"`
	Name      string      `json:"name"`
	Genesis   string      `json:"genesis"` // path
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
	Next      string      `json:"next"`               // what to type
}

// Run makes the genesis and writes it.
func (c *NewCmd) Run(ctx context.Context, out *console) error {
	g, text, err := c.genesis(time.Now())
	if err != nil {
		return err
	}
	e, err := c.chooseLinks(ctx, &g)
	if err != nil {
		return err
	}
	run := runOf(g, c.Learners, len(text.Train()), e != nil)
	if c.Tokens == nil {
		run.Budget = run.Enough()
		g.Outer.Budget = run.Budget
	}
	if err := g.Validate(); err != nil {
		return err
	}
	path := c.Out
	if path == "" {
		path = fileName(g.Name) + ".genesis"
	}
	if err := writeNew(path, g.Encode(), 0o644); err != nil {
		return err
	}
	id := g.RunID()
	answer := created{
		Run: hex.EncodeToString(id[:]), Name: g.Name, Genesis: path, Params: g.Model.Params(), Fragments: g.Outer.Fragments,
		Optimizer: g.Inner.OptimizerName(), LR: g.Inner.LR, H: g.Outer.H, Codec: g.Outer.Codec.String(), Merge: g.Outer.Merge,
		Expected: e, Budget: g.Outer.Budget, Length: tune.LengthOf(run), Data: g.Data.Name, SHA256: g.Data.SHA256,
		Next: fmt.Sprintf("atoll join --genesis %s --dir %s%s", quoted(path), quoted(defaultDir(id)), c.joinFlags()),
	}
	if c.JSON {
		return out.json(answer)
	}
	return answer.print(out)
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
		{"model", fmt.Sprintf("%s parameters in %s", big(float64(a.Params)), plural(a.Fragments, "fragment", "fragments"))},
		{"training", fmt.Sprintf("%s, peak learning rate %v", a.Optimizer, a.LR)},
		{"rounds", fmt.Sprintf("every %s%s, %s", plural(a.H, "step", "steps"), a.Expected.pace(), a.Codec)},
		{"merge", fmt.Sprintf("%s, %s", a.Merge, robustness[a.Merge])},
		{"budget", fmt.Sprintf("%s tokens: %s times the text to train on", big(float64(a.Budget)), twoDigits(a.Length.Passes))},
		lengthRow(a.Length),
		{"data", a.Data + dataHash(a.SHA256)},
	}
	if a.Expected != nil {
		rows = append(rows, a.Expected.links())
	}
	if cost := codecCost(a.Codec, a.H, a.Expected); cost != "" {
		rows = append(rows, []string{"codec", a.Codec + ": " + cost})
	}
	err := table(out.out, rows...)
	out.answer("\nStart it on the first machine with\n\n    %s\n\nIt prints the join link for all others.", a.Next)
	return err
}

// dataHash says which text may be trained on; "" is any.
func dataHash(sha256 string) string {
	if sha256 == "" {
		return ""
	}
	return fmt.Sprintf(", sha256 %.16s: nodes refuse to train on another text", sha256)
}

// genesis is the default one for the model with the flags on top, to be validated once links have chosen H; and what it
// trains on.
func (c *NewCmd) genesis(now time.Time) (g genesis.Genesis, text *corpus.Corpus, err error) {
	if err := c.check(); err != nil {
		return g, nil, err
	}
	budget := uint64(1) // Enough takes its place when H is known
	if c.Tokens != nil {
		budget = uint64(*c.Tokens)
	}
	if g, err = genesis.Default(c.Model, budget, c.Seed, now.UnixMilli()); err != nil {
		return g, nil, err
	}
	if err := c.checkModel(g); err != nil {
		return g, nil, err
	}
	if text, err = corpus.Open(c.Data); err != nil {
		return g, nil, err
	}
	if err := text.Fits(g.Model.Context); err != nil {
		return g, nil, err
	}
	g.Data = genesis.Data{Name: text.Name(), SHA256: text.SHA256()}
	if c.OwnData {
		g.Data = genesis.Data{Name: genesis.OwnText}
	}
	if err := g.SetOptimizer(c.Optimizer); err != nil {
		return g, nil, err
	}
	if c.Codec != auto {
		if g.Outer.Codec, err = codec.Parse(c.Codec); err != nil {
			return g, nil, err
		}
	}
	c.apply(&g) // SetH goes by the codec
	return g, text, g.SetProfile(c.Profile)
}

// checkModel refuses flags that the model, or what all runs have in common, does not allow.
func (c *NewCmd) checkModel(g genesis.Genesis) error {
	if most := len(g.Model.Specs()); c.Fragments > most {
		return badUsage("--fragments is %d; the model has only %d tensors", c.Fragments, most)
	}
	if least := g.Outer.Quorum; c.Answerers != 0 && (c.Answerers < least || c.Answerers > outer.MaxAnswerers) {
		return badUsage("--answerers is %d; use %d to %d, or leave it out", c.Answerers, least, outer.MaxAnswerers)
	}
	return nil
}

// Limits of a genesis.
const (
	maxName = 200
	maxLR   = 10
)

// check refuses flags that no genesis can have.
func (c *NewCmd) check() error {
	switch {
	case len(c.Name) > maxName:
		return badUsage("--name has %d bytes; use at most %d", len(c.Name), maxName)
	case c.Tokens != nil && *c.Tokens < 1:
		return badUsage("--tokens is %d; use 1 or more, or leave it out", *c.Tokens)
	case c.Batch < 0 || c.Batch > maxBatch:
		return badUsage("--batch is %d; use 1 to %d, or leave it out", c.Batch, maxBatch)
	case !(c.LR >= 0 && c.LR <= maxLR):
		return badUsage("--lr is %v; use a learning rate between 0 and %d", c.LR, maxLR)
	case c.H < 0 || c.H > outer.MaxH:
		return badUsage("--h is %d; use 1 to %d, or leave it out", c.H, outer.MaxH)
	case c.Fragments < 0:
		return badUsage("--fragments is %d; use 1 or more, or leave it out", c.Fragments)
	case c.OwnData && c.Data == "":
		return badUsage("--own-data needs --data PATH with the text of this machine")
	}
	return c.checkLinks()
}

// apply puts the flags that were given into a genesis.
func (c *NewCmd) apply(g *genesis.Genesis) {
	set(&g.Name, c.Name)
	set(&g.Outer.Fragments, c.Fragments)
	set(&g.Outer.Answerers, c.Answerers)
	g.Outer.SetH(cmp.Or(c.H, outer.DefaultH(g.Outer.Codec))) // again, as it depends on the codec
	c.followH(g)
	g.Outer.SetLearners(c.Learners)
	if c.Batch > 0 {
		g.Outer.MaxTokensPerStep = g.Outer.MaxTokensPerStep / uint64(g.Batch) * uint64(c.Batch)
	}
	set(&g.Batch, c.Batch)
}

// followH sets what goes with H, unless it was asked for: the merge, after SetH, and the rate, which goes with that.
func (c *NewCmd) followH(g *genesis.Genesis) {
	if merge := asked(c.Merge); merge != "" {
		g.Outer.SetMerge(merge)
	}
	g.SetRate(true)
	set(&g.Inner.LR, c.LR)
}

func set[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}

// joinFlags are the flags that the first node should have to match the run.
func (c *NewCmd) joinFlags() string {
	flags := " --profile " + c.Profile
	if c.Data != "" {
		flags += " --data " + quoted(c.Data)
	}
	return flags
}

// quoted makes a word of a value for a shell.
func quoted(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@,", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// fileName makes a file name of a run's name.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r <= ' ' {
			return '-'
		}
		return r
	}, name)
}

// writeNew writes a file that must not exist yet.
func writeNew(path string, b []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; choose another name", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

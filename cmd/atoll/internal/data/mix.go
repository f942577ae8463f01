package data

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/status"
	"atoll/optimizer/trainer/corpus/build"
	"atoll/optimizer/trainer/corpus/shards"
)

const mixHelp = `
Makes one corpus of several. Learners read from each in proportion to its weight, however large it is: below, 70 of 100 rows are prose. Build all of them with one tokenizer.

What each corpus holds out stays held out. A document that one of them holds out is removed from what the others train on. Corpora of bytes do not tell where a document ends, so nothing is removed from them.

    atoll data build --tokenizer tokens --out prose book.txt
    atoll data build --tokenizer tokens --out code src
    atoll data mix --out mixed prose=70 code=30

Shards are hard links where the disk allows that, so a mixture takes no room beside its corpora.`

// mixCmd is `atoll data mix`.
type mixCmd struct {
	Corpora []string `arg:"" name:"corpus=weight" help:"Folder of a corpus, and its weight: 7 or 0.7. Only how weights compare matters."`
	Out     string   `help:"Folder to write. It must be new, or have a mixture that was interrupted." required:"" placeholder:"DIR"`
	Name    string   `help:"What people call the mixture. Default: the folder's name." placeholder:"TEXT"`
	Licence string   `help:"Terms under which the text may be used. Default: those of the corpora, joined by AND." placeholder:"TEXT"`
	Mirror  []string `help:"Folder on the web that will have the mixture: https://... The mirrors of its corpora are kept." placeholder:"URL"`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*mixCmd) Help() string { return mixHelp }

// Run mixes.
func (c *mixCmd) Run(ctx context.Context, out *cli.Console) error {
	corpora, err := weighed(c.Corpora)
	if err != nil {
		return err
	}
	m := cli.NewMeter(out, "reading shards")
	config := build.MixConfig{Out: c.Out, Name: c.Name, Licence: c.Licence, Mirrors: c.Mirror, Corpora: corpora,
		Progress: func(done, all int64) { m.At(float64(done), float64(all)) }}
	if config.Name == "" {
		config.Name = filepath.Base(c.Out)
	}
	result, err := build.Mix(ctx, config)
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: the same command goes on: %w", err)
	}
	if err != nil {
		return err
	}
	if result.Removed > 0 {
		out.Say("note: removed %s that another corpus holds out", cli.Plural(int(result.Removed), "document", "documents"))
	}
	if result.Manifest.Tokenizer.End < 0 {
		out.Say("note: these tokens do not tell where a document ends, so a document that one corpus holds out may be in another")
	}
	return printCorpus(out, c.JSON, c.Out, result.Manifest)
}

// weighed reads folders with weights, such as prose=0.7. The weights become the smallest whole
// numbers that compare in the same way.
func weighed(args []string) (list []build.Weighed, err error) {
	common := uint64(0)
	for _, arg := range args {
		at := strings.LastIndexByte(arg, '=')
		if at < 1 {
			return nil, cli.BadUsage("%q has no weight: write the folder and its weight, such as prose=70", arg)
		}
		weight, err := parseWeight(arg[at+1:])
		if err != nil {
			return nil, cli.BadUsage("%q: %v", arg, err)
		}
		list = append(list, build.Weighed{Dir: arg[:at], Weight: weight})
		common = divisor(common, weight)
	}
	for i := range list {
		if list[i].Weight /= common; list[i].Weight > shards.MaxWeight {
			return nil, cli.BadUsage("%q: the weights are too far apart or too exact: use whole numbers up to %d", args[i], shards.MaxWeight)
		}
	}
	return list, nil
}

// weightPlaces is how exact a weight can be: one in a million, as MaxWeight.
const weightPlaces = 1e6

// parseWeight reads a weight, in millionths.
func parseWeight(text string) (uint64, error) {
	w, err := strconv.ParseFloat(text, 64)
	millionths := math.Round(w * weightPlaces)
	if err != nil || !(millionths >= 1 && w <= shards.MaxWeight) {
		return 0, fmt.Errorf("%q is no weight: use a number above 0 and up to %d, such as 70 or 0.7", text, shards.MaxWeight)
	}
	return uint64(millionths), nil
}

// divisor is the greatest that two numbers have in common.
func divisor(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// componentView is a corpus of a mixture in the answer of `atoll data show`.
type componentView struct {
	Name          string  `json:"name"`
	Licence       string  `json:"licence"`
	Digest        string  `json:"digest"` // of the corpus by itself
	Weight        uint64  `json:"weight"`
	Share         float64 `json:"share"` // of the rows that are read, 0 to 1
	Shards        int     `json:"shards"`
	Tokens        int64   `json:"tokens"`
	Bytes         int64   `json:"bytes"` // of text, as the following one
	HeldOutTokens int64   `json:"held_out_tokens"`
	HeldOutBytes  int64   `json:"held_out_bytes"`
}

// viewMixture is what a mixture is mixed of; nothing for other corpora.
func viewMixture(m *shards.Manifest) (list []componentView) {
	if !m.Mixed() {
		return nil
	}
	for _, p := range m.Parts() {
		v := componentView{Name: p.Name, Licence: p.Licence, Digest: p.Digest.String(), Weight: p.Weight, Share: p.Share, Shards: len(p.Shards)}
		v.Tokens, v.Bytes = shards.Tokens(p.Shards)
		v.HeldOutTokens, v.HeldOutBytes = shards.Tokens(p.HeldOut)
		list = append(list, v)
	}
	return list
}

// row shows a corpus of a mixture.
func (v componentView) row() []string {
	return []string{"", fmt.Sprintf("%s of the rows are from %s: %s tokens of %s, and %s held out", cli.Percent(v.Share, 1), v.Name,
		status.Count(float64(v.Tokens)), status.Bytes(float64(v.Bytes)), status.Bytes(float64(v.HeldOutBytes)))}
}

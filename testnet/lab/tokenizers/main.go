// Package tokenizers trains models on texts in bytes and in tokens of a BPE, and tells the bits per byte that each
// comes to: after the same text, and after the same time of the processor. It starts testnets of real processes, one
// after the other, and stores each as a line of JSON. After an interruption the same command goes on.
package tokenizers

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"atoll/testnet/lab/trials"
)

const usage = `usage, from the top of the repository:

  go run -C testnet/lab . tokenizers [flags]
      prose is Newton's Opticks, code as much of Go's own, and mixture is half and half by weight. Each is trained on in
      bytes and in a BPE; the BPE once for the same text, and once for the same time of the processor.

flags:
  --models LIST  of tiny, small, base. Default: tiny,small
  --texts LIST   of prose, code, mixture. Default: all
  --seeds LIST   of the runs of each cell. Default: 1,2,3
  --text BYTES   text that a run reads. Default: 1000000
  --vocab N      tokens of the BPE. Default: 8192
  --nodes N      of each testnet. Default: 2
  --atoll PATH   program to run; otherwise the source here is built
  --work DIR     folder of texts and corpora. Default: tokenizers
  --trials FILE  what has been measured. It is not measured again. Default: tokenizers.jsonl
  --table        print what has been measured, and measure nothing
`

// typed is what was typed.
type typed struct {
	models, texts       string
	seeds               []int
	vocab, nodes        int
	text                int64
	atoll, work, trials string
	table               bool
}

// Usage is what there is to type.
func Usage() string { return usage }

// Main does what was typed.
func Main(ctx context.Context, args []string, out, log io.Writer) error {
	t, err := parse(args)
	if err != nil {
		return err
	}
	if !t.table {
		if err := measure(ctx, t, log); err != nil {
			return err
		}
	}
	all, err := trials.Read[trial](t.trials)
	if err != nil {
		return err
	}
	return table(out, all)
}

func parse(args []string) (t typed, err error) {
	f := flag.NewFlagSet("tokenizers", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&t.models, "models", "tiny,small", "")
	f.StringVar(&t.texts, "texts", strings.Join(textNames, ","), "")
	seeds := f.String("seeds", "1,2,3", "")
	f.Int64Var(&t.text, "text", 1_000_000, "")
	f.IntVar(&t.vocab, "vocab", 8192, "")
	f.IntVar(&t.nodes, "nodes", 2, "")
	f.StringVar(&t.atoll, "atoll", "", "")
	f.StringVar(&t.work, "work", "tokenizers", "")
	f.StringVar(&t.trials, "trials", "tokenizers.jsonl", "")
	f.BoolVar(&t.table, "table", false, "")
	if err := f.Parse(args); err != nil {
		return t, err
	}
	switch {
	case f.NArg() > 0:
		return t, fmt.Errorf("%q is no flag: --help says what there is", f.Arg(0))
	case t.nodes < 1 || t.text < 1:
		return t, fmt.Errorf("--nodes is %d and --text %d: use 1 or more of each", t.nodes, t.text)
	}
	for _, word := range split(*seeds) {
		seed, err := strconv.Atoi(word)
		if err != nil || seed < 1 {
			return t, fmt.Errorf("--seeds is %q: use numbers from 1, such as 1,2,3", *seeds)
		}
		t.seeds = append(t.seeds, seed)
	}
	return t, nil
}

// table prints the cells, a line for each with the values of all seeds.
func table(out io.Writer, all []trial) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "model\ttext\ttokens\tequal\tMB of text\tbits per byte\tmedian\tprocessor's s")
	var order []cell
	of := map[cell][]trial{}
	for _, t := range all {
		c := t.cell
		c.Seed = 0
		if of[c] == nil {
			order = append(order, c)
		}
		of[c] = append(of[c], t)
	}
	for _, c := range order {
		var bits, seconds, text []float64
		var words []string
		for _, t := range of[c] {
			bits, seconds, text = append(bits, t.BPB), append(seconds, t.ProcessorS), append(text, t.Text/1e6)
			words = append(words, fmt.Sprintf("%.3f", t.BPB))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.2f\t%s\t%.3f\t%.0f\n", c.Model, c.Name, c.Tokens, c.Equal, trials.Median(text), strings.Join(words, " "),
			trials.Median(bits), trials.Median(seconds))
	}
	return w.Flush()
}

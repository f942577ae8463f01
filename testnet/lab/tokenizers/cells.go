package tokenizers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"atoll/testnet/lab/program"
	"atoll/testnet/lab/trials"
)

// Kinds of tokens, and what a run has in common with that on bytes.
const (
	inBytes   = "bytes"
	inBPE     = "bpe"
	equalText = "text"
	equalTime = "time"
)

// cell is one run.
type cell struct {
	Model     string `json:"model"`
	Name      string `json:"text"`
	Tokens    string `json:"tokens"`
	Equal     string `json:"equal"`
	Seed      int    `json:"seed"`
	TextBytes int64  `json:"text_bytes"` // that a run on bytes reads
	Vocab     int    `json:"vocab"`
	Nodes     int    `json:"nodes"`
}

// trial is what came of it.
type trial struct {
	cell
	Budget        uint64  `json:"tokens_budget"`
	Folded        uint64  `json:"tokens_folded"`
	BytesPerToken float64 `json:"bytes_per_token"`
	Text          float64 `json:"text_folded"` // bytes
	Params        int     `json:"params"`
	BPB           float64 `json:"val_bpb"`
	ValBytes      int     `json:"val_bytes"`
	ProcessorS    float64 `json:"processor_s"` // of all processes of the testnet
	WallS         float64 `json:"wall_s"`
}

// cells are those of a model and a seed, in the order in which one needs another.
func (t typed) cells(model string, seed int) (list []cell) {
	for _, name := range split(t.texts) {
		for _, kind := range [][2]string{{inBytes, equalText}, {inBPE, equalText}, {inBPE, equalTime}} {
			list = append(list, cell{model, name, kind[0], kind[1], seed, t.text, t.vocab, t.nodes})
		}
	}
	return list
}

func split(list string) []string { return strings.Split(list, ",") }

// measure plays what has not been played: one seed of all cells before the next.
func measure(ctx context.Context, t typed, log io.Writer) error {
	for _, name := range split(t.texts) {
		if !slices.Contains(textNames, name) {
			return fmt.Errorf("--texts: there is no text %q: use %s", name, strings.Join(textNames, ","))
		}
	}
	if err := os.MkdirAll(t.work, 0o755); err != nil {
		return err
	}
	if t.atoll == "" {
		var err error
		if t.atoll, err = program.Build(ctx, t.work, log); err != nil {
			return err
		}
	}
	w := world{typed: t, log: log}
	if err := w.prepare(ctx); err != nil {
		return err
	}
	for _, model := range split(t.models) {
		for _, seed := range t.seeds {
			for _, c := range t.cells(model, seed) {
				if err := w.play(ctx, c); err != nil {
					return fmt.Errorf("%+v: %w", c, err)
				}
			}
		}
	}
	return nil
}

// play measures a cell, unless it has been.
func (w *world) play(ctx context.Context, c cell) error {
	all, err := trials.Read[trial](w.trials)
	if err != nil || find(all, c) != nil {
		return err
	}
	corpus, err := w.corpus(ctx, c.Name, c.Tokens)
	if err != nil {
		return err
	}
	budget, err := budgetOf(c, corpus, all)
	if err != nil {
		return err
	}
	out, spent, err := program.Measured(ctx, w.log, nil, w.atoll, "testnet", "--nodes", strconv.Itoa(c.Nodes), "--model", c.Model, "--data", corpus.dir,
		"--tokens", strconv.FormatUint(budget, 10), "--seed", strconv.Itoa(c.Seed), "--json")
	var r struct {
		Params int      `json:"params"`
		Folded uint64   `json:"tokens_folded"`
		BPB    *float64 `json:"val_bpb"`
		Bytes  int      `json:"val_bytes"`
		WallS  float64  `json:"wall_s"`
		Dir    string   `json:"dir"`
		Ours   bool     `json:"dir_temporary"`
	}
	bad := json.Unmarshal(program.LastLine(out), &r)
	if bad == nil && r.BPB == nil {
		bad = errors.New("it tells no bits per byte")
	}
	if bad != nil {
		return fmt.Errorf("the testnet measured nothing: %w", cmp.Or(err, bad))
	}
	if r.Ours {
		if err := os.RemoveAll(r.Dir); err != nil {
			return err
		}
	}
	result := trial{cell: c, Budget: budget, Folded: r.Folded, BytesPerToken: corpus.bytesPerToken, Text: float64(r.Folded) * corpus.bytesPerToken,
		Params: r.Params, BPB: *r.BPB, ValBytes: r.Bytes, ProcessorS: spent.Seconds(), WallS: r.WallS}
	fmt.Fprintf(w.log, "%s %s, %s, equal %s, seed %d: %.3f bits per byte, %.0f s of the processor\n", c.Model, c.Name, c.Tokens, c.Equal, c.Seed, result.BPB, result.ProcessorS)
	return trials.Append(w.trials, result)
}

// budgetOf is the tokens of a run: those of the text, or as many as take the time that the bytes took with the same seed.
func budgetOf(c cell, corpus builtCorpus, all []trial) (uint64, error) {
	tokens := float64(c.TextBytes) / corpus.bytesPerToken
	if c.Equal == equalTime {
		bytes, bpe := c, c
		bytes.Tokens, bytes.Equal, bpe.Equal = inBytes, equalText, equalText
		slow, fast := find(all, bytes), find(all, bpe)
		if slow == nil || fast == nil {
			return 0, fmt.Errorf("its time is that of cells which have not been measured")
		}
		tokens *= slow.ProcessorS / fast.ProcessorS
	}
	return uint64(math.Round(tokens)), nil
}

// find is the trial of a cell, nil if there is none.
func find(all []trial, c cell) *trial {
	i := slices.IndexFunc(all, func(t trial) bool { return t.cell == c })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Package size measures what one fragment of a large model costs a node: a delta, a fold, and a join. A join is the cutting
// of a tip into chunks, the manifest of all fragments, the check of each chunk, and the tip put together again. What a node
// takes with all fragments is computed from that and the plan, and labelled so. Times are those of processors.
//
// Values are of a normal distribution. It takes some 50 bytes of memory for each value of a fragment.
package size

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/hardware"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

const usage = `usage, from the top of the repository:

  go run -C testnet/lab . size [--model FILE] [--learners 8]
      FILE has the sizes of a model as atoll new reads them, or is tiny, small or base
`

// Usage is what there is to type.
func Usage() string { return usage }

// Main does what was typed.
func Main(_ context.Context, args []string, out, _ io.Writer) error {
	flags := flag.NewFlagSet("size", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	model := flags.String("model", "base", "")
	learners := flags.Int("learners", 8, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *learners < 1 || *learners > mostLearners {
		return fmt.Errorf("--learners is %d; use 1 to %d", *learners, mostLearners)
	}
	sizes, err := genesis.ModelConfig(*model)
	if err != nil {
		return err
	}
	g, _, err := genesis.Spec{Model: sizes, Tokens: 1 << 40, Seed: 1, Learners: *learners, WindowBytes: windowBytes}.Make()
	if err != nil {
		return err
	}
	f := newFragment(g)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	f.describe(table)
	err = errors.Join(f.fold(table, *learners), f.join(table))
	f.whole(table, *learners)
	return errors.Join(err, table.Flush())
}

// windowBytes is what atoll new lets the deltas of the union window take.
const windowBytes = 20e9

// mostLearners keeps the payloads of a round in memory.
const mostLearners = 64

// fragment is the largest of a run, and what was measured of it.
type fragment struct {
	g       genesis.Genesis
	plan    outer.Plan
	index   int
	tip     *outer.Tip
	payload int           // bytes
	encoded time.Duration // one delta
	folded  time.Duration // one round
}

func newFragment(g genesis.Genesis) *fragment {
	f := &fragment{g: g, plan: g.Plan()}
	for i := range f.plan {
		if f.plan[i].Len > f.plan[f.index].Len {
			f.index = i
		}
	}
	return f
}

// values is how many values the fragment has.
func (f *fragment) values() int { return f.plan[f.index].Len }

// perValue is an amount for each value of the fragment.
func (f *fragment) perValue(x float64) float64 { return x / float64(f.values()) }

func (f *fragment) describe(out io.Writer) {
	least := slices.MinFunc(f.plan, func(a, b outer.Fragment) int { return a.Len - b.Len }).Len
	fmt.Fprintf(out, "model\t%d parameters, %d fragments of %d to %d values\n", f.g.Params(), len(f.plan), least, f.values())
}

// progress is the standard deviation of deltas beside that of parameters.
const progress = 1e-3

// fold makes deltas of the fragment and folds a round of them.
func (f *fragment) fold(out io.Writer, learners int) error {
	rng := rand.New(rand.NewPCG(1, 1))
	values := normal(rng, f.values(), progress)
	began := hardware.ProcessorTime()
	payload, err := codec.Encode(f.g.Outer.Codec, values)
	if err != nil {
		return err
	}
	f.encoded, f.payload = since(began), len(payload)
	prev := outer.Genesis(f.plan[f.index], normal(rng, f.values(), 1), f.g.OuterParams())
	began, wall := hardware.ProcessorTime(), time.Now()
	tip, result, err := outer.Fold(f.g.OuterParams(), f.plan[f.index], prev, 1, f.round(payload, learners))
	if err == nil && len(result.Folded) != learners {
		err = fmt.Errorf("%d of %d deltas were folded: %v", len(result.Folded), learners, result.Refused)
	}
	f.tip, f.folded = tip, since(began)
	took := time.Since(wall)
	fmt.Fprintf(out, "delta\t%d bytes in %v, %.3f for each value; encoded in %.2f s\n", f.payload, f.g.Outer.Codec, f.perValue(float64(f.payload)), f.encoded.Seconds())
	fmt.Fprintf(out, "fold\tof %d deltas in %.2f s, %.1f ns for each value; %.2f s by the clock on %d threads\n",
		learners, f.folded.Seconds(), f.perValue(float64(f.folded.Nanoseconds())), took.Seconds(), runtime.GOMAXPROCS(0))
	return err
}

// round is a round in which each learner made the same progress.
func (f *fragment) round(payload []byte, learners int) (set []outer.Contribution) {
	for i := range learners {
		name := outer.Author{byte(i + 1)}
		steps := uint32(f.g.Outer.H)
		set = append(set, outer.Contribution{Payload: payload, Delta: outer.Delta{
			ID: outer.ID(wire.Sum(name[:])), Author: name, Fragment: f.index, Round: 1, Steps: steps, Tokens: uint64(steps) * uint64(f.g.Batch*f.g.Model.Context),
			Codec: f.g.Outer.Codec, Size: len(payload),
		}})
	}
	return set
}

// join gives the fragment to a joiner, in memory, with the manifest of all fragments.
func (f *fragment) join(out io.Writer) error {
	if f.tip == nil {
		return nil // the fold has failed
	}
	began := hardware.ProcessorTime()
	m, chunks := core.CutSnapshot(f.tip, []outer.Link{core.LinkOf(f.tip, nil)})
	m.Closed = m.Round
	cut := since(began)
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	all := wire.Manifest{Fragments: slices.Repeat([]wire.FragmentManifest{m}, len(f.plan))}
	signed := wire.EncodeManifest(key, f.g.RunID(), all)
	if _, err := wire.OpenManifest(f.g.RunID(), signed); err != nil {
		return err
	}
	fmt.Fprintf(out, "manifest\tof all fragments %d bytes; a node of this run reads %d at most\n", len(signed), wire.ManifestSize(len(f.plan), f.g.LargestTip()))
	began = hardware.ProcessorTime()
	var blob bytes.Buffer
	for i, d := range m.Chunks {
		if err := wire.CheckChunk(m.ChunkLen(i), d, chunks[d]); err != nil {
			return err
		}
		blob.Write(chunks[d])
	}
	checked := since(began)
	began = hardware.ProcessorTime()
	tip, _, err := core.DecodeSnapshot(blob.Bytes(), m, f.plan[f.index], f.g.OuterParams())
	if err != nil {
		return err
	}
	if tip.State != f.tip.State {
		return errors.New("the joiner has another tip")
	}
	fmt.Fprintf(out, "join\t%d bytes in %d chunks: the snapshot source cuts them in %.2f s, the joiner checks them in %.2f s and has the same tip after %.2f s more\n",
		m.Size, len(m.Chunks), cut.Seconds(), checked.Seconds(), since(began).Seconds())
	return nil
}

// whole computes what all fragments take.
func (f *fragment) whole(out io.Writer, learners int) {
	n := float64(f.g.Params())
	gb := func(x float64) float64 { return x / 1e9 }
	round := f.perValue(float64(f.payload)) * n * float64(learners)
	disk := hardware.Role{External: true}.DiskOf(f.g)
	fmt.Fprintf(out, "computed\ta round of all fragments: %.2f GB of deltas, %.1f s of a core to fold and %.1f s for the own delta; tips of %.2f GB\n",
		gb(round), f.perValue(f.folded.Seconds())*n, f.perValue(f.encoded.Seconds())*n, gb(float64(f.g.TipsSize(f.plan))))
	fmt.Fprintf(out, "computed\ta node beside its learner: %.2f GB of memory, %.2f GB of kept states and %.2f GB of the learner's on the disk; %d rounds of deltas are %.1f GB\n",
		gb(float64(hardware.Role{External: true}.Need(f.g))), gb(float64(disk.Bases)), gb(float64(disk.Learner)), f.g.Outer.Window, gb(round*float64(f.g.Outer.Window)))
}

// since is the processor time that this process has taken since then: other work on the machine does not count.
func since(began time.Time) time.Duration { return hardware.ProcessorTime().Sub(began) }

func normal(rng *rand.Rand, n int, deviation float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(deviation * rng.NormFloat64())
	}
	return v
}

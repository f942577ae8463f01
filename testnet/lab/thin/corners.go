package thin

import (
	"context"
	"fmt"
	"time"

	"atoll/testnet/lab/trials"
)

// corner is a world at what `atoll new --bandwidth` chooses.
type corner struct {
	nodes int
	mbit  float64
	delay time.Duration
}

// corners are the thinnest and the thickest links, the nearest and the farthest, and the usual one.
func corners() (all []corner) {
	for _, nodes := range []int{4, 8} {
		for _, c := range []corner{{mbit: 100, delay: 10 * time.Millisecond}, {mbit: 100, delay: 150 * time.Millisecond},
			{mbit: 5, delay: 10 * time.Millisecond}, {mbit: 5, delay: 150 * time.Millisecond}, {mbit: 20, delay: 40 * time.Millisecond}} {
			c.nodes = nodes
			all = append(all, c)
		}
	}
	return all
}

// cornerRounds is how many rounds of each fragment a corner takes: some to settle, and enough to measure.
const cornerRounds = 16

func cornerRows(ctx context.Context, s Settings) (rows []Row, err error) {
	p := caller{path: s.Atoll, log: s.Log}
	for _, c := range corners() {
		step := s.Pace
		if step == 0 {
			step = time.Duration(c.nodes) * pacePerNode
		}
		choice, err := p.choose(ctx, s.Model, links{learners: c.nodes, bits: fmt.Sprintf("%gmbit", c.mbit), step: step})
		if err != nil {
			return nil, err
		}
		rows = append(rows, s.cornerRow(c, choice, step))
	}
	return rows, nil
}

// stepTokens are the tokens of a step of one row of the model small.
const stepTokens = 256

func (s Settings) cornerRow(c corner, choice chosen, step time.Duration) Row {
	tokens := float64(cornerRounds * choice.H * c.nodes * stepTokens)
	const world = "chosen"
	return Row{
		Name:  fmt.Sprintf("corner %d x %g Mbit/s %v", c.nodes, c.mbit, c.delay),
		About: fmt.Sprintf("%d nodes at what atoll new --bandwidth chooses: %s every %d steps in %d fragments", c.nodes, choice.Codec, choice.H, choice.Fragments),
		Pace:  step,
		Worlds: []World{s.world(world, c.nodes, tokens, "--h", fmt.Sprint(choice.H), "--fragments", fmt.Sprint(choice.Fragments),
			"--codec", choice.Codec, "--link", fmt.Sprintf("rate=%gmbit,delay=%v", c.mbit, c.delay))},
		Figures: func(o map[string]Outcome) []Figure {
			w, link := o[world], bytesPerSecond(c.mbit)
			share := w.perNode(w.PayloadBytes) / link
			return append(kept(w), []Figure{
				{"promised share of the link", choice.Expected.LinkShare, trials.Shown},
				{"measured share", share, trials.Shown},
				{"measured of promised", share / choice.Expected.LinkShare, trials.Between(0.8, 1.2)},
				{"all bytes of the link", w.perNode(w.BytesSent) / link, trials.Shown},
				{"goodput_up", orZero(w.GoodputUp), trials.AtLeast(0.95)},
				{"late of deltas", w.late(), trials.AtMost(0.1)},
				{"planned steps", w.planned(), trials.AtMost(float64(choice.H))},
				{"idle at the end, of the last payloads' way", w.idle() / w.lastS(choice.Fragments, c.mbit, c.delay), trials.Shown},
			}...)
		},
	}
}

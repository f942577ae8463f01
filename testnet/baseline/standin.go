package baseline

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"atoll/optimizer/trainer"
	"atoll/tensor"
)

// steps is what a member trains with: the built-in trainer, or what stands in for it.
type steps interface {
	Params() []float32
	Grads() []float32
	Slab() *tensor.Slab
	Steps() int64
	Step(ctx context.Context, lr float64) (trainer.StepResult, error)
	Gradient(ctx context.Context, ready func(lo int)) (trainer.StepResult, error)
	Update(lr float64) error
	SaveState() (io.Reader, error)
	LoadState(r io.Reader) error
}

// standIn computes nothing and touches every value, as optimizer/trainer/external/standin does for nodes: what a baseline
// costs beside training is measured with it, for models that this machine cannot train. The pace says how long a step takes.
type standIn struct {
	params, grads *tensor.Slab
	tokens        int // of a step
	taken         int64
}

func newStandIn(specs []tensor.Spec, tokens int) *standIn {
	return &standIn{params: tensor.NewSlab(specs), grads: tensor.NewSlab(specs), tokens: tokens}
}

func (s *standIn) Params() []float32  { return s.params.Data }
func (s *standIn) Grads() []float32   { return s.grads.Data }
func (s *standIn) Slab() *tensor.Slab { return s.params }
func (s *standIn) Steps() int64       { return s.taken }

// Gradient is the same in every step, and final from the last tensor on.
func (s *standIn) Gradient(ctx context.Context, ready func(lo int)) (trainer.StepResult, error) {
	for i := len(s.grads.Views) - 1; i >= 0; i-- {
		if err := ctx.Err(); err != nil {
			return trainer.StepResult{}, fmt.Errorf("stand-in step %d: %w", s.taken+1, err)
		}
		g := s.grads.Of(s.grads.Views[i])
		for j := range g {
			g[j] = standInGradient * float32(j&1*2-1)
		}
		if ready != nil {
			ready(s.grads.Views[i].Offset)
		}
	}
	return trainer.StepResult{Tokens: s.tokens, Loss: math.Log(256)}, nil
}

// standInGradient is the size of every value of a gradient.
const standInGradient = 1e-3

// Step is a Gradient and its Update.
func (s *standIn) Step(ctx context.Context, lr float64) (trainer.StepResult, error) {
	res, err := s.Gradient(ctx, nil)
	if err != nil {
		return trainer.StepResult{}, err
	}
	return res, s.Update(lr)
}

// Update goes along the gradient.
func (s *standIn) Update(lr float64) error {
	tensor.Axpy(-float32(lr), s.grads.Data, s.params.Data)
	s.taken++
	return nil
}

// SaveState gives the number of steps, as there are no moments.
func (s *standIn) SaveState() (io.Reader, error) {
	return bytes.NewReader(binary.LittleEndian.AppendUint64(nil, uint64(s.taken))), nil
}

func (s *standIn) LoadState(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, 9))
	if err != nil {
		return fmt.Errorf("read the state of a stand-in: %w", err)
	}
	if len(b) != 8 {
		return fmt.Errorf("state of a stand-in has %d bytes, not 8", len(b))
	}
	s.taken = int64(binary.LittleEndian.Uint64(b))
	return nil
}

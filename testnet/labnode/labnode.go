// Package labnode runs a node of a testnet: one to which harm is done on demand, at the socket of
// package controls.
package labnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync/atomic"

	"atoll/gossip/p2p"
	"atoll/node"
	"atoll/node/status"
	"atoll/optimizer/trainer"
	"atoll/testnet/controls"
	"atoll/testnet/shaping"
)

// lab is what is done to one node.
type lab struct {
	dir    string
	log    *slog.Logger
	link   *shaping.Shaper // nil: as it is
	liar   liar
	node   node.Handle
	server *status.Server
}

// Run is node.Run with controls, on this machine alone. A link that is not nil shapes its connections.
func Run(ctx context.Context, cfg node.Config, link *shaping.Link) (status.Snapshot, error) {
	l := &lab{dir: cfg.Dir, log: cfg.Log}
	l.link = shaping.New(link, filepath.Base(cfg.Dir))
	cfg.Profile, cfg.OnConn, cfg.Trainer, cfg.Started = p2p.Local, l.link.Conn, l.train, l.started
	last, err := node.Run(ctx, cfg)
	if l.server != nil {
		err = errors.Join(err, l.server.Close())
	}
	return last, err
}

func (l *lab) train(t trainer.Trainer) trainer.Trainer {
	l.liar.Trainer = t
	return &l.liar
}

func (l *lab) started(h node.Handle) (err error) {
	l.node = h
	l.server, err = controls.Serve(l.dir, l.obey, l.corrupt)
	return err
}

func (l *lab) obey(o controls.Orders) error {
	l.link.Become(o.Link)
	l.liar.lies.Store(o.InvertedGradient)
	l.node.Block(o.Block)
	return l.node.Pace(o.Pace)
}

// corrupt flips a bit of the newest global parameters of a fragment.
func (l *lab) corrupt(at controls.BitFlip) error {
	if at.Bit < 0 || at.Bit >= controls.MantissaBits {
		return fmt.Errorf("corrupt: bit %d; use 0 to %d, so that the value stays a number", at.Bit, controls.MantissaBits-1)
	}
	return l.node.Global(at.Fragment, func(values []float32) {
		if at.Value < 0 || at.Value >= len(values) {
			l.log.Error("corrupt: there is no such value", "fragment", at.Fragment, "value", at.Value, "values", len(values))
			return
		}
		x := &values[at.Value]
		*x = math.Float32frombits(math.Float32bits(*x) ^ 1<<at.Bit)
		l.log.Info("corrupted", "fragment", at.Fragment, "value", at.Value, "bit", at.Bit)
	})
}

// liar is a trainer that steps away from where it should while it lies.
type liar struct {
	trainer.Trainer
	lies atomic.Bool
}

// Step implements trainer.Trainer.
func (l *liar) Step(ctx context.Context, lr float64) (trainer.StepResult, error) {
	if l.lies.Load() {
		lr = -lr
	}
	return l.Trainer.Step(ctx, lr)
}

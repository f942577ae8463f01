package baseline

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
	"atoll/testnet/controls"
	"atoll/testnet/shaping"
)

// ModelFile has the parameters of the run's model, float32, little-endian, in the order
// of the slab; a member writes it into its folder when the run is over.
const ModelFile = "model.f32"

// Config is what a member's process is told.
type Config struct {
	Kind        string // DP, DiLoCo or Local
	Genesis     []byte // canonical bytes
	Dir         string // key, step log, last status, model
	Coordinator string // address
	Data        string // as corpus.Open takes it
	Threads     int    // 0 = one per core
	Pace        time.Duration
	Overlap     bool          // dp: send gradients while others are still being computed
	Link        *shaping.Link // nil = as it is
	StandIn     bool          // nothing is computed, and every value is touched
	Log         *slog.Logger
}

func (c Config) validate() error {
	switch {
	case c.Kind != DP && c.Kind != DiLoCo && c.Kind != Local:
		return fmt.Errorf("kind %.20q: use %s, %s or %s", c.Kind, DP, DiLoCo, Local)
	case c.Dir == "":
		return errors.New("the folder is missing: name one")
	case c.Threads < 0:
		return fmt.Errorf("threads is %d: use 1 or more, or 0 for one per core", c.Threads)
	case c.Pace < 0:
		return fmt.Errorf("pace is %v: use a duration, or 0 for as fast as it goes", c.Pace)
	}
	if _, err := address.PeerIDOf(c.Coordinator); err != nil {
		return fmt.Errorf("coordinator %q is not an address that ends in /p2p/ID: %w", c.Coordinator, err)
	}
	return nil
}

// process is a member with what it needs of its machine.
type process struct {
	cfg     Config
	genesis genesis.Genesis
	started time.Time
	key     ed25519.PrivateKey
	store   *store.Store
	steps   *store.StepLog
	link    *shaping.Shaper // nil = as it is
	host    *p2p.Host
	events  sync.WaitGroup // reads the events of host
	builtin steps
	pace    atomic.Int64
	member  *Member
	leave   context.CancelFunc
	digest  string // of the model, once the run is over
}

// Run is a member's process: it takes part until the run is over or ctx ends, and
// writes its last status. An error means that it could not go on.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := cfg.validate(); err != nil {
		return err
	}
	g, err := genesis.Decode(cfg.Genesis)
	if err != nil {
		return err
	}
	p := &process{cfg: cfg, genesis: g, started: time.Now()}
	p.pace.Store(int64(cfg.Pace))
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	ctx, p.leave = context.WithCancel(ctx)
	defer p.leave()
	return errors.Join(p.run(ctx), p.close())
}

func (p *process) run(ctx context.Context) error {
	if err := p.open(); err != nil {
		return err
	}
	if err := p.listen(); err != nil {
		return err
	}
	learner, err := p.learner()
	if err != nil {
		return err
	}
	p.member.learner = learner
	control, err := status.Serve(p.cfg.Dir, status.Handlers{
		Snapshot: func() (status.Snapshot, bool) { return p.snapshot(), true },
		Tips:     func() (io.WriterTo, bool) { return nil, false },
		Leave:    p.leave,
	})
	if err != nil {
		return err
	}
	steered, err := controls.Serve(p.cfg.Dir, p.obey, p.corrupt)
	if err != nil {
		return errors.Join(err, control.Close())
	}
	err = p.member.Run(ctx)
	if err == nil {
		err = p.conclude()
	}
	return errors.Join(err, steered.Close(), control.Close())
}

func (p *process) obey(o controls.Orders) error {
	p.pace.Store(int64(o.Pace))
	p.link.Become(o.Link)
	p.host.Block(o.Block)
	return nil
}

func (p *process) corrupt(controls.BitFlip) error {
	return errors.New("corrupt: a baseline does not look for damaged memory")
}

// open opens what the folder has.
func (p *process) open() (err error) {
	if p.key, _, err = store.LoadKey(p.cfg.Dir); err != nil {
		return store.Explain(err, p.cfg.Dir)
	}
	if p.store, err = store.Open(p.cfg.Dir, p.genesis.RunID()); err != nil {
		return store.Explain(err, p.cfg.Dir)
	}
	if err = store.SaveGenesis(p.cfg.Dir, p.cfg.Genesis); err != nil {
		return store.Explain(err, p.cfg.Dir)
	}
	p.steps, err = p.store.OpenStepLog()
	return err
}

// listen starts the network.
func (p *process) listen() (err error) {
	p.link = shaping.New(p.cfg.Link, filepath.Base(p.cfg.Dir))
	if p.host, err = newHost(p.key, p.genesis.RunID(), hello.Learner, p.link, p.cfg.Log); err != nil {
		return err
	}
	p.events.Go(func() {
		for range p.host.Events() { // ends with the host; what happens shows in calls and streams
		}
	})
	p.member = NewMember(p.host, p.cfg.Coordinator, nil, p.genesis.Outer.Budget, p.cfg.Overlap, p.cfg.Log)
	p.member.account.prior = p.steps.Sum().Tokens
	return nil
}

// learner makes the same trainer that a node of the run would have.
func (p *process) learner() (Learner, error) {
	data, err := corpus.Open(p.cfg.Data)
	if err != nil {
		return nil, err
	}
	g := p.genesis
	if err := g.Data.Check(data.Name(), data.SHA256(), p.cfg.Data); err != nil {
		return nil, err
	}
	if p.builtin, err = p.trainer(data); err != nil {
		return nil, err
	}
	c, err := newCommon(g, p.builtin, &p.pace, &p.member.account, p.steps)
	if err != nil {
		return nil, err
	}
	if p.cfg.Kind == DiLoCo {
		return newDiLoCo(c, g), nil
	}
	return &dp{c}, nil
}

func (p *process) trainer(data *corpus.Corpus) (steps, error) {
	g := p.genesis
	if p.cfg.StandIn {
		return newStandIn(g.Model.Specs(), g.Batch*g.Model.Context), nil
	}
	return trainer.New(trainer.Config{
		Model: g.Model, Batch: g.Batch, Seed: g.Seed, Author: wire.PeerIDOf(p.key), Threads: p.cfg.Threads, Optim: g.Inner.Optim(),
	}, data)
}

// conclude keeps the model if the run is over and this member has it.
func (p *process) conclude() error {
	if _, final := p.member.state(); !final {
		return nil
	}
	b := appendFloats(nil, p.builtin.Params())
	sum := sha256.Sum256(b)
	p.digest = hex.EncodeToString(sum[:])
	if err := os.WriteFile(filepath.Join(p.cfg.Dir, ModelFile), b, 0o644); err != nil {
		return fmt.Errorf("write model: %w", err)
	}
	return nil
}

// ReadModel reads the model that a member has left in its folder.
func ReadModel(dir string, into *tensor.Slab) error {
	b, err := os.ReadFile(filepath.Join(dir, ModelFile))
	if err != nil {
		return fmt.Errorf("model of a baseline: %w", err)
	}
	if len(b) != 4*len(into.Data) {
		return fmt.Errorf("model in %s has %d bytes: %d are %d parameters", dir, len(b), 4*len(into.Data), len(into.Data))
	}
	readFloats(into.Data, b)
	return nil
}

// close ends what was opened, and writes the last status before the network goes.
func (p *process) close() error {
	var err error
	if p.member != nil {
		b, failed := json.MarshalIndent(p.snapshot(), "", "  ")
		if failed == nil {
			failed = os.WriteFile(filepath.Join(p.cfg.Dir, status.FinalFile), append(b, '\n'), 0o644)
		}
		err = errors.Join(err, failed)
	}
	if p.host != nil {
		err = errors.Join(err, p.host.Close())
		p.events.Wait()
	}
	if p.steps != nil {
		err = errors.Join(err, p.steps.Close())
	}
	if p.store != nil {
		err = errors.Join(err, p.store.Close())
	}
	return err
}

package exhaust

import (
	"bytes"
	"crypto/ed25519"
	"fmt"
	"slices"

	"atoll/gossip"
	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
	"atoll/tensor"
	"atoll/tensor/codec"
	"atoll/testnet/sim/memory"
)

// The world that is searched: as small as the protocol lets it be.
const (
	mostNodes = 3
	quantum   = 1000 // ms: a tick, which is the heartbeat period and the grace as well
	start     = core.Time(1_000_000_000)
	budget    = 3 // tokens, one a step: two or three rounds
)

var run = wire.RunID{9}

var specs = []tensor.Spec{{Name: "a.weight", Shape: []int{2, 2}}}

// rules are the parameters of the run. A learner opens a round after each step, and as
// eta is 1 and the codec exact, local parameters are the global ones once all is folded.
func rules() outer.Params {
	p := outer.Spec{Fragments: 1, H: 1, Codec: codec.F32, Learners: mostNodes, StepTokens: 1, Budget: budget, CreatedMs: start}.Params()
	p.GraceMinMs, p.GraceMaxMs, p.MinRoundMs = quantum, quantum, 0
	p.WindowAccept, p.WindowUnion = 2*budget, 4*budget // nobody falls behind by more than half of one, and asks for a snapshot
	return p
}

// node is one process: a replica whose disk and folds take no time. It is a function
// of the inputs that it was given.
type node struct {
	index   int
	up      bool
	life    int
	clock   core.Time
	replica *replica.Replica
	learner *outer.Learner
	local   []float32
	may     bool
	done    bool   // the run is over here
	steps   int    // of all lives
	made    uint64 // tokens that the account must show: restored, and of this life
	lost    uint64 // tokens that were not published when it crashed
	handle  uint64
	asked   map[uint64]request // of others, by handle
	calls   map[uint64]string  // of its own that wait for an answer: the request
	disk    *memory.Ledger
	torn    bool // dies once its next own delta is durable, before anything of it leaves
	locals  *locals
	*medium
}

// medium is what leaves a node while it takes one input.
type medium struct {
	out []output
	err error // the first promise that this node broke
}

// request is who waits for an answer, and the call that it answers.
type request struct {
	from int
	call uint64
}

// constants of all nodes of all states.
var (
	params  = rules()
	plan    = outer.NewPlan(tensor.NewSlab(specs).Views, 1)
	genesis = outer.Genesis(plan[0], make([]float32, plan[0].Len), params)
	keys    [mostNodes]ed25519.PrivateKey
	ids     [mostNodes]wire.PeerID
	records [mostNodes]hello.Record // capability records; they never change
	signed  [mostNodes]hello.Signed
)

func init() {
	for i := range mostNodes {
		keys[i] = ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), byte(i+1)))
		ids[i] = wire.PeerIDOf(keys[i])
		records[i] = hello.Record{
			Protocol: hello.Protocol, Run: run, Author: ids[i], Seq: 1, Role: hello.Learner, Trainer: hello.Builtin,
			Precision: "f32", Agent: "exhaust",
		}
		var err error
		if signed[i], err = hello.Sign(keys[i], records[i]); err != nil {
			panic(err) // the record above is wrong
		}
	}
}

func newNode(index int, ls *locals) *node {
	n := &node{index: index, clock: start, medium: &medium{}, locals: ls, disk: memory.New(1)}
	n.disk.Synced = true
	return n
}

// boot starts the process over what the disk holds.
func (n *node) boot() {
	n.up, n.life, n.may, n.done = true, n.life+1, false, false
	n.asked, n.calls = map[uint64]request{}, map[uint64]string{}
	cfg := core.Config{
		Params: params, Plan: plan, Key: keys[n.index], Run: run, Learner: true,
		Alone: true,
		Gossip: gossip.Config{
			Self: ids[n.index], Key: keys[n.index], Run: run, Incarnation: int64(n.life), HeartbeatMinMs: quantum,
			WindowAccept: params.WindowAccept, WindowUnion: params.WindowUnion,
			OpenRecord: openRecord, VerifyHeader: n.verify,
		},
	}
	x := executor{n}
	r, was, err := replica.New(replica.Config{
		Machine: cfg, Policy: replica.Policy{BaseEvery: 2, BaseAt: 1}, Genesis: replica.Genesis{Tips: firstTips},
		Exec: x, Net: x, Watcher: x, Arithmetic: arithmetic{n}, Ledger: ledger{n.disk, n},
	})
	if err != nil {
		n.broken("load: %v", err)
		return
	}
	n.replica, n.local = r, make([]float32, plan[0].Len)
	n.learner = outer.NewLearner(params, plan, n.local, was.Tips, r.OwnPayload)
	if err := r.Start(n.clock, cfg, was, learner{n.learner, n}); err != nil {
		n.broken("restore: %v", err)
		return
	}
	n.machine().Step(n.clock, gossip.OwnRecord{Signed: signed[n.index]})
	n.made = n.account().Total().Tokens
	r.Execute()
}

func (n *node) machine() *core.Machine { return n.replica.Machine() }

func (n *node) account() rounds.Account { return n.machine().Rounds().Fragment(0).Account() }

func firstTips() []*outer.Tip { return []*outer.Tip{genesis} }

// openRecord is Signed.Open of the three records that there are.
func openRecord(s hello.Signed) (*hello.Record, error) {
	for i, known := range signed {
		if bytes.Equal(s.Encode(), known.Encode()) {
			return &records[i], nil
		}
	}
	record, err := s.Open()
	return &record, err
}

// verify checks each header once: that is a function of its bytes.
func (n *node) verify(h wire.SignedHeader) error {
	err, known := n.locals.verified[h]
	if !known {
		err = h.Verify(run)
		n.locals.verified[h] = err
	}
	return err
}

// crash ends the process. What was not published is lost.
func (n *node) crash() {
	_, pending := n.learner.Pending(0)
	n.lost += pending
	n.up, n.replica, n.learner, n.local = false, nil, nil, nil
	n.disk.Crash()
}

// step is one inner step: a gradient that no other step has, of values whose
// sums are exact.
func (n *node) step() {
	n.steps++
	for i := range n.local {
		n.local[i] += float32(n.steps*(i+1)) / float32(int(4)<<(4*n.index))
	}
	n.made++
	n.replica.Stepped(1)
}

func (n *node) broken(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf("node %d: "+format, append([]any{n.index}, args...)...)
	}
}

func indexOf(id wire.PeerID) int { return slices.Index(ids[:], id) }

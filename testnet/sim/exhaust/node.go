package exhaust

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"

	"atoll/gossip"
	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// The world that is searched: as small as the protocol lets it be.
const (
	nodes   = 3
	quantum = 1000 // ms: a tick, which is the beat period and the grace as well
	start   = core.Time(1_000_000_000)
	budget  = 3 // tokens, one a step: two or three rounds
)

var run = wire.RunID{9}

var specs = []tensor.Spec{{Name: "a.weight", Shape: []int{2, 2}}}

// rules are the parameters of the run. A learner rings after each step, and as
// eta is 1 and the codec exact, theta is the anchor once all is folded.
func rules() outer.Params {
	p := outer.Defaults(1, budget, start)
	p.H, p.HMin, p.Codec = 1, 1, codec.F32
	p.GraceMinMs, p.GraceMaxMs, p.MinRoundMs = quantum, quantum, 0
	p.WindowAccept, p.WindowUnion = 4, 8
	return p
}

// node is one process: the real cores, and around them a disk and a fold that
// take no time. It is a function of the inputs that it was given.
type node struct {
	index   int
	up      bool
	life    int
	clock   core.Time
	machine *core.Machine
	learner *outer.Learner
	theta   []float32
	closed  uint32
	may     bool
	done    bool   // the run is over here
	steps   int    // of all lives
	made    uint64 // tokens that the learner's account must show: restored, and of this life
	lost    uint64 // tokens that were not published when it crashed
	handle  uint64
	asked   map[uint64]request // of others, by handle
	calls   map[uint64]string  // of its own that wait for an answer: the request
	disk    disk
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
	keys    [nodes]ed25519.PrivateKey
	ids     [nodes]wire.PeerID
	records [nodes]hello.Record // capability records; they never change
	signed  [nodes]hello.Signed
)

func init() {
	for i := range nodes {
		keys[i] = ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), byte(i+1)))
		ids[i] = wire.PeerIDOf(keys[i])
		records[i] = hello.Record{
			Protocol: hello.Protocol, Run: run, Author: ids[i], Seq: 1, Role: hello.Learner, Trainer: hello.Builtin,
			Precision: "f32", Codecs: []uint8{uint8(params.Codec)}, Agent: "exhaust",
		}
		var err error
		if signed[i], err = hello.Sign(keys[i], records[i]); err != nil {
			panic(err) // the record above is wrong
		}
	}
}

func newNode(index int, ls *locals) *node {
	n := &node{index: index, clock: start, medium: &medium{}, locals: ls}
	n.disk = disk{
		payloads: map[wire.Digest][]byte{}, headers: map[wire.Digest]wire.SignedHeader{},
		bases: map[uint32]*outer.Tip{0: genesis}, rounds: map[uint32]outer.Link{},
	}
	return n
}

// boot starts the process over what the disk holds.
func (n *node) boot() {
	tips := []*outer.Tip{genesis}
	saved, err := core.Load(&n.disk, ids[n.index], params, tips)
	if err != nil {
		n.broken("load: %v", err)
	}
	if saved != nil {
		tips[0] = saved[0].Tip
	}
	n.up, n.life, n.may, n.done, n.closed = true, n.life+1, false, false, tips[0].Round
	n.asked, n.calls = map[uint64]request{}, map[uint64]string{}
	cfg := core.Config{
		Params: params, Plan: plan, Key: keys[n.index], Run: run, Learner: true, Precision: outer.PrecisionF32,
		QuietMs: quantum, Alone: true,
		Gossip: gossip.Config{
			Self: ids[n.index], Key: keys[n.index], Run: run, Incarnation: int64(n.life), BeatMinMs: quantum,
			WindowAccept: params.WindowAccept, WindowUnion: params.WindowUnion,
			OpenRecord: openRecord, VerifyHeader: n.verify,
		},
	}
	n.machine = core.New(cfg, tips)
	n.machine.Step(n.clock, gossip.OwnRecord{Signed: signed[n.index]})
	n.theta = make([]float32, plan[0].Len)
	n.learner = outer.NewLearner(params, plan, n.theta, tips, n.ownPayload)
	if saved != nil {
		n.restore(saved[0])
	}
	n.made = n.learner.Account(0).Total().Tokens
	n.carryOut()
}

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
	n.lost += n.learner.Account(0).Pending.Tokens
	n.up, n.machine, n.learner, n.theta = false, nil, nil, nil
	maps.DeleteFunc(n.disk.bases, func(round uint32, _ *outer.Tip) bool { return round > 0 && round%2 == 0 })
}

func (n *node) restore(s core.Saved) {
	folded, err := n.machine.Restore(n.clock, 0, s.Restored, s.Headers)
	if err != nil {
		n.broken("restore: %v", err)
		return
	}
	if err := n.learner.Restore(0, core.OwnWork(s.Own, folded)); err != nil {
		n.broken("restore: %v", err)
	}
}

func (n *node) ownPayload(seq uint64) ([]byte, error) {
	for _, o := range n.disk.own {
		if o.seq == seq {
			return n.disk.payloads[o.id], nil
		}
	}
	return nil, fmt.Errorf("own delta %d is not on disk", seq)
}

// step is one inner step: a gradient that no other step has, of values whose
// sums are exact.
func (n *node) step() {
	n.steps++
	for i := range n.theta {
		n.theta[i] += float32(n.steps*(i+1)) / float32(int(4)<<(4*n.index))
	}
	n.made++
	n.learner.Stepped(1, []uint32{n.closed})
	n.machine.Stepped(n.clock, 1)
}

func (n *node) broken(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf("node %d: "+format, append([]any{n.index}, args...)...)
	}
}

// carryOut does what the machine wants done, at once, until it wants nothing.
func (n *node) carryOut() {
	for n.up {
		effects := n.machine.Effects()
		if len(effects) == 0 {
			return
		}
		for _, e := range effects {
			if n.up {
				n.carry(e)
			}
		}
	}
}

func (n *node) carry(e core.Effect) {
	switch e := e.(type) {
	case gossip.Publish:
		n.send(output{kind: outMessage, bytes: string(e.Bytes)})
	case gossip.Call:
		n.calls[e.ID] = string(e.Request)
		n.send(output{kind: outCall, to: indexOf(e.To), call: e.ID, bytes: string(e.Request)})
	case gossip.Reply:
		n.reply(e.Handle, e.Response)
	case gossip.ReplyPayload:
		n.reply(e.Handle, wire.Response{Status: wire.OK, Body: n.disk.payloads[e.ID]}.Encode())
		n.machine.Step(n.clock, gossip.Replied{Handle: e.Handle, Payload: e.ID})
	case core.StoreOwn:
		n.storeOwn(e)
	case core.StoreDelta:
		n.storeDelta(e)
	case core.MayStep:
		n.may = e.Yes
	case core.Finished:
		n.done = true
	case rounds.WantDraft:
		n.draft(e.Fragment)
	case rounds.WantFold:
		n.fold(e)
	case outer.Adopt:
		n.adopt(e)
	case rounds.DropBase:
		delete(n.disk.bases, e.Round)
	case gossip.Misbehaved, gossip.StateDiffers, core.Verdict, core.Refused, core.TakeBack, core.InstallTips:
		n.broken("%T among honest nodes inside of the window: %+v", e, e)
	default:
		if !core.News(e) {
			n.broken("nothing carries out a %T: %+v", e, e)
		}
	}
}

func (n *node) send(o output) { n.out = append(n.out, o) }

func (n *node) reply(handle uint64, response []byte) {
	q, ok := n.asked[handle]
	if !ok {
		n.broken("answers handle %d twice", handle)
		return
	}
	delete(n.asked, handle)
	n.send(output{kind: outAnswer, to: q.from, call: q.call, bytes: string(response)})
}

func (n *node) storeOwn(e core.StoreOwn) {
	for _, o := range n.disk.own {
		if n.disk.headers[o.id].Header.Round == e.Header.Header.Round {
			n.broken("signs round %d twice", e.Header.Header.Round)
		}
	}
	n.disk.headers[e.ID], n.disk.payloads[e.ID] = e.Header, e.Payload
	n.disk.own = append(n.disk.own, ownRecord{e.Seq, e.ID})
	n.disk.mark = max(n.disk.mark, e.Header.Header.Round)
	if n.torn {
		n.crash()
		return
	}
	n.machine.StoredOwn(n.clock, e)
}

func (n *node) storeDelta(e core.StoreDelta) {
	d := core.DeltaOf(e.ID, e.Header.Header)
	if err := params.CheckPayload(plan[0], d, e.Payload); err != nil {
		n.machine.Invalid(n.clock, e.ID, err)
		return
	}
	n.disk.headers[e.ID], n.disk.payloads[e.ID] = *e.Header, e.Payload
	n.machine.Stored(n.clock, e.ID)
}

func (n *node) draft(p int) {
	d, err := n.learner.Draft(p)
	if err != nil {
		n.broken("draft: %v", err)
		return
	}
	n.machine.Drafted(n.clock, d)
}

func (n *node) fold(e rounds.WantFold) {
	tip := n.disk.bases[e.Start]
	if tip == nil {
		n.broken("base %d was not kept", e.Start)
		return
	}
	var states []outer.Digest
	for i, set := range e.Sets {
		var contributions []outer.Contribution
		for _, d := range set {
			contributions = append(contributions, outer.Contribution{Delta: d, Payload: n.disk.payloads[wire.Digest(d.ID)]})
		}
		next, result, err := outer.Fold(params, plan[0], tip, e.Start+uint32(i)+1, contributions)
		if err == nil && len(result.Refused) > 0 {
			err = result.Refused[0].Err
		}
		if err != nil && !errors.Is(err, outer.ErrEnded) {
			n.broken("fold: %v", err)
			return
		}
		tip = next
		states = append(states, tip.State)
		if e.Keeps(tip.Round) {
			n.disk.bases[tip.Round] = tip
		}
		n.disk.rounds[tip.Round] = core.LinkOf(tip, result.Folded)
	}
	maps.DeleteFunc(n.disk.rounds, func(round uint32, _ outer.Link) bool { return round > tip.Round })
	if err := n.machine.Folded(n.clock, 0, e.Job, tip, states); err != nil {
		n.broken("%v", err)
	}
}

func (n *node) adopt(a outer.Adopt) {
	loss, err := n.learner.Follow(a)
	if err != nil {
		n.broken("%v", err)
		return
	}
	if a.Discards() || !loss.None() {
		n.machine.Healed(n.clock, a.Fragment, loss)
	}
	n.closed = a.Tip.Round
}

func indexOf(id wire.PeerID) int { return slices.Index(ids[:], id) }

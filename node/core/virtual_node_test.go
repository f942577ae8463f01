package core_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"strings"

	"atoll/gossip"
	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/shadow"
	"atoll/optimizer/rounds"
	"atoll/tensor/codec"
)

// nodeConfig is what one node differs in.
type nodeConfig struct {
	alone    bool      // its link names nobody: it trains from genesis
	divisor  core.Time // so many times slower than others; 0 = 1
	observer bool
	keyOnly  bool          // restarted with nothing but its key
	spare    bool          // drops every payload that it may
	trusted  []wire.PeerID // peers that its link names
}

// node is one process: a machine, and around it what carries out its effects.
type node struct {
	w     *world
	cfg   nodeConfig
	index int
	key   ed25519.PrivateKey
	id    wire.PeerID
	disk  *disk
	up    bool
	life  int // counts boots: what was under way in an earlier one is void
	side  int
	links map[*node]bool

	machine  *core.Machine
	learner  *outer.Learner
	trainer  *quadratic
	shadow   []*shadow.Shadow
	commands []func()         // of the machine to the learner, at the next step boundary
	closed   []uint32         // rounds of the tips that theta stands on
	heard    map[string]bool  // gossip messages
	waiting  map[uint64]asked // by handle
	handle   uint64
	donated  map[wire.Digest][]byte // chunks of manifests handed out
	may      bool
	finished bool
	left     bool
	goes     bool // stops by itself when the run is over and nobody needs it
	hung     bool // a pause: events wait
	backlog  []func()

	steps    int
	trained  uint64
	lost     uint64 // tokens per fragment that a crash took, summed
	installs int    // of tips taken whole
	refolds  int
	unfolds  int
	returns  int
	discards int
	heals    int
	verdicts []core.Verdict
	raised   int // marks, for deltas that the disk does not know of
	known    bool
	spoils   bool             // gives away tips with a bit flipped
	ignores  wire.RequestKind // never answers those
	ready    core.Time        // when this life first could train
	said     []string         // of its way in

	miscalculates bool // the next fold
}

func newNode(w *world, index int, cfg nodeConfig) *node {
	key := testKey(index)
	cfg.divisor = max(cfg.divisor, 1)
	return &node{
		w: w, cfg: cfg, index: index, key: key, id: wire.PeerIDOf(key),
		disk: newDisk(len(w.plan)), links: map[*node]bool{},
	}
}

// boot makes the machine over what the disk holds.
func (n *node) boot(saved []core.Saved) {
	w := n.w
	n.up, n.life, n.may, n.finished = true, n.life+1, false, false
	n.ready, n.said = 0, nil
	n.commands, n.heard, n.waiting, n.donated = nil, map[string]bool{}, map[uint64]asked{}, map[wire.Digest][]byte{}
	tips := w.genesis()
	for p := range saved {
		tips[p] = saved[p].Tip
	}
	n.machine = core.New(core.Config{
		Params: w.cfg.params, Plan: w.plan, Key: n.key, Run: w.run, Learner: !n.cfg.observer, Precision: outer.PrecisionF32,
		QuietMs: quietMs, Alone: n.cfg.alone, AloneMs: 3000, KeyOnly: n.cfg.keyOnly,
		Gossip: gossip.Config{
			Self: n.id, Key: n.key, Run: w.run, Trusted: n.cfg.trusted, Incarnation: w.now, BeatMinMs: 200,
			Common: n.disk.common, Resume: n.disk.fetching,
			WindowAccept: w.cfg.params.WindowAccept, WindowUnion: w.cfg.params.WindowUnion,
			HasChunk: func(d wire.Digest) bool { return n.disk.chunks[d] != nil },
		},
	}, tips)
	n.trainer = newQuadratic(w.seed<<16 + uint64(n.index)<<8 + uint64(n.life))
	n.learner = outer.NewLearner(w.cfg.params, w.plan, n.trainer.theta, tips, n.disk.ownPayload)
	n.shadow, n.closed = make([]*shadow.Shadow, len(tips)), make([]uint32, len(tips))
	for p, tip := range tips {
		n.shadow[p] = shadow.New(w.plan[p], w.cfg.params.Codec, tip)
		n.closed[p] = tip.Round
		n.disk.bases[p][tip.Round] = tip
	}
	n.restore(saved)
	signed, _ := n.record()
	n.machine.Step(w.now, gossip.OwnRecord{Signed: signed})
	n.tick(n.life)
	n.beginStepping()
}

func (n *node) record() (hello.Signed, hello.Record) {
	role := hello.Record{
		Protocol: hello.Protocol, Run: n.w.run, Author: n.id, Seq: 1, Role: hello.Learner, Trainer: hello.Builtin,
		Precision: "f32", Codecs: []uint8{uint8(n.w.cfg.params.Codec)}, Agent: "virtual",
		Addrs: []string{fmt.Sprintf("/ip4/10.0.0.1/tcp/%d", 1000+n.index)},
	}
	s, err := hello.Sign(n.key, role)
	if err != nil {
		n.w.fatalf("record: %v", err)
	}
	return s, role
}

// do runs one input of this life and carries out what it caused; a hung node
// does it when it goes on.
func (n *node) do(input func()) {
	if !n.up {
		return
	}
	if n.hung {
		n.backlog = append(n.backlog, input)
		return
	}
	input()
	for effects := n.machine.Effects(); len(effects) > 0; effects = n.machine.Effects() {
		for _, e := range effects {
			n.carry(e)
		}
	}
}

// later runs an input after ms, unless the node died meanwhile.
func (n *node) later(ms core.Time, input func()) {
	life := n.life
	n.w.after(ms, func() {
		if n.life == life {
			n.do(input)
		}
	})
}

// hang stops a node without closing its connections; wake lets it go on.
func (n *node) hang() { n.hung = true }

func (n *node) wake() {
	n.hung = false
	backlog := n.backlog
	n.backlog = nil
	for _, input := range backlog {
		n.do(input)
	}
}

func (n *node) tick(life int) {
	if !n.up || n.life != life {
		return
	}
	n.do(func() {
		perSecond := 1000 * tokensPerStep / float64(n.stepMs())
		n.machine.SetLearning(uint64(n.steps), n.trained, perSecond, 0, 1)
		n.machine.Tick(n.w.now)
		n.dropOld()
		if n.left && n.machine.MayLeave() || n.goes && n.machine.MayEnd(n.w.now) {
			n.stop()
		}
	})
	n.w.after(tickMs, func() { n.tick(life) })
}

// dropOld drops the payloads that nobody can need any more.
func (n *node) dropOld() {
	for p := range n.w.plan {
		if n.cfg.spare {
			n.disk.dropPayloads(p, n.machine.Droppable(p))
		}
	}
}

// carry does what the machine wants done.
func (n *node) carry(e core.Effect) {
	switch e := e.(type) {
	case gossip.Publish:
		n.publish(e.Bytes)
	case gossip.Call:
		n.call(e)
	case gossip.Dial:
		n.dial(e.Addr)
	case gossip.Drop:
		n.w.disconnect(n, n.w.node(e.Peer))
	case gossip.Reconnect:
		n.reconnect(n.w.node(e.Peer))
	case gossip.Reply, gossip.ReplyPayload, gossip.ReplyGenesis, gossip.ReplyManifest, gossip.ReplyChunk:
		n.reply(e)
	case gossip.StoreHeader:
		n.disk.history[e.Header.Header.ID(n.w.run)] = e.Header.Header
	case gossip.Fetching:
		n.later(diskMs, func() { n.disk.fetching = e.At })
	case gossip.StoreChunk:
		n.later(diskMs, func() { n.disk.chunks[e.Digest] = e.Bytes })
	case core.StoreOwn:
		n.later(diskMs, func() { n.storeOwn(e) })
	case core.StoreDelta:
		n.later(diskMs, func() { n.storeDelta(e) })
	case core.StoreEvidence:
		n.later(diskMs, func() { n.disk.evidence = append(n.disk.evidence, e.Evidence) })
	case core.InstallTips:
		n.later(diskMs+foldMs, func() { n.install(e) })
	case core.TakeBack:
		n.command(func() { n.takeBack(e) })
	case core.RaiseMark:
		n.disk.raiseMark(e.Fragment, e.Round)
		n.raised++
	case core.MarksKnown:
		n.known, n.cfg.keyOnly = true, false
	case core.MayStep:
		n.may = e.Yes
		n.firstMay()
	case gossip.Event:
		if e.Kind == gossip.EventJoin {
			n.said = append(n.said, e.Text)
		}
	case core.Finished:
		n.finished = true
	case gossip.Misbehaved:
		if !n.w.faulty[e.Peer] {
			n.w.fatalf("node %d thinks that node %d misbehaves: %s", n.index, n.w.node(e.Peer).index, e.Reason)
		}
	case gossip.StateDiffers:
		if !n.w.damages {
			n.w.fatalf("node %d: node %d has another state on one chain", n.index, n.w.node(e.Peer).index)
		}
	case core.Verdict:
		n.verdicts = append(n.verdicts, e)
	case core.Refused:
		if !n.w.faulty[e.Header.Author] {
			n.w.fatalf("node %d refused a delta: %v", n.index, e.Reason)
		}
	default:
		n.carryOuter(e)
	}
}

func (n *node) carryOuter(e core.Effect) {
	switch e := e.(type) {
	case rounds.WantDraft:
		n.command(func() { n.draft(e.Fragment) })
	case outer.Adopt:
		n.command(func() { n.adopt(e) })
		n.later(diskMs, func() {
			n.disk.forgetOwn(func(o ownRecord) bool { return slices.Contains(e.Final(), o.seq) })
		})
	case rounds.WantFold:
		n.later(foldMs, func() { n.fold(e) })
	case rounds.DropBase:
		n.later(foldMs, func() { delete(n.disk.bases[e.Fragment], e.Round) })
	default:
		if !core.News(e) {
			n.w.fatalf("node %d: nothing carries out a %T: %+v", n.index, e, e)
		}
	}
}

// firstMay notes when the node first may train.
func (n *node) firstMay() {
	if n.may && n.ready == 0 {
		n.ready = n.w.now
		n.w.onReady(n)
	}
}

// command is done at the next step boundary.
func (n *node) command(do func()) {
	n.commands = append(n.commands, do)
	if !n.may {
		n.later(1, n.boundary)
	}
}

func (n *node) boundary() {
	for len(n.commands) > 0 {
		do := n.commands[0]
		n.commands = n.commands[1:]
		do()
	}
}

func (n *node) stepMs() core.Time { return n.w.cfg.stepMs * n.cfg.divisor }

func (n *node) beginStepping() { n.nextStep(n.life) }

// nextStep takes a step every stepMs for as long as it may. Nothing but MayStep
// and the node's own death stops it.
func (n *node) nextStep(life int) {
	n.w.after(n.stepMs(), func() {
		if !n.up || n.life != life {
			return
		}
		if !n.hung {
			n.do(n.step)
		}
		n.nextStep(life)
	})
}

func (n *node) step() {
	n.boundary()
	if !n.may {
		return
	}
	before := slices.Clone(n.trainer.theta)
	n.trainer.step()
	for p := range n.shadow {
		n.shadow[p].Moved(before, n.trainer.theta)
	}
	n.learner.Stepped(tokensPerStep, n.closed)
	n.steps++
	n.trained += tokensPerStep
	n.machine.Stepped(n.w.now, tokensPerStep)
}

func (n *node) draft(p int) {
	d, err := n.learner.Draft(p)
	if err != nil && n.w.cfg.params.Overwrite { // an adoption was faster
		n.machine.DraftFailed(n.w.now, p)
		return
	}
	if errors.Is(err, outer.ErrDamaged) {
		n.machine.DraftFailed(n.w.now, p)
		n.machine.Damaged(n.w.now, p)
		return
	}
	if err != nil {
		n.w.fatalf("node %d: draft: %v", n.index, err)
	}
	n.shadow[p].Published(n.w.cfg.params, d.Seq, n.decode(p, d.Payload))
	n.machine.Drafted(n.w.now, d)
}

// takeBack gives a draft back to the learner.
func (n *node) takeBack(e core.TakeBack) {
	if err := n.learner.TakeBack(e.Fragment, e.Seq); err != nil {
		n.w.fatalf("node %d: %v", n.index, err)
	}
	n.shadow[e.Fragment].Returned([]uint64{e.Seq})
}

func (n *node) decode(p int, payload []byte) []float32 {
	q := make([]float32, n.w.plan[p].Len)
	if err := codec.Decode(payload, len(q), q); err != nil {
		n.w.fatalf("node %d: payload: %v", n.index, err)
	}
	return q
}

func (n *node) adopt(a outer.Adopt) {
	loss, err := n.learner.Follow(a)
	if a.Discards() || !loss.None() {
		n.machine.Healed(n.w.now, a.Fragment, loss)
		n.heals++
	}
	if err != nil {
		n.w.fatalf("node %d: %v", n.index, err)
	}
	n.closed[a.Fragment] = a.Tip.Round
	n.unfolds += len(a.Unfold)
	n.returns += len(a.Returned)
	n.discards += len(a.Discarded) + len(a.Dropped)
	s := n.shadow[a.Fragment]
	s.Adopted(a, a.Discards() || loss.Found != nil)
	if off := s.Off(n.trainer.theta); off > 1e-3 && !n.w.cfg.params.Overwrite {
		n.w.fatalf("node %d: theta is %g off A + sum q + U after round %d", n.index, off, a.Tip.Round)
	}
}

// fold carries out a WantFold from the kept bases.
func (n *node) fold(e rounds.WantFold) {
	tip := n.disk.bases[e.Fragment][e.Start]
	if tip == nil && n.installs > 0 { // asked for before tips were taken whole
		n.machine.FoldFailed(n.w.now, e.Fragment, e.Job)
		return
	}
	if tip == nil {
		n.w.fatalf("node %d: base %d of fragment %d was not kept", n.index, e.Start, e.Fragment)
	}
	if !tip.Sound() {
		n.machine.LostBase(n.w.now, e.Fragment, e.Start)
		n.machine.FoldFailed(n.w.now, e.Fragment, e.Job)
		return
	}
	if e.Start < n.machine.Rounds().Tip(e.Fragment).Round {
		n.refolds++
	}
	var states []outer.Digest
	for i, set := range e.Sets {
		round := e.Start + uint32(i) + 1
		var contributions []outer.Contribution
		for _, d := range set {
			contributions = append(contributions, outer.Contribution{Delta: d, Payload: n.disk.payloads[wire.Digest(d.ID)]})
		}
		next, result, err := outer.Fold(n.w.cfg.params, n.w.plan[e.Fragment], tip, round, contributions)
		if err != nil {
			n.w.fatalf("node %d: %v", n.index, err)
		}
		tip = next
		if n.miscalculates {
			tip, n.miscalculates = n.w.offByOne(next, e.Fragment), false
		}
		states = append(states, tip.State)
		n.disk.keepRound(e.Fragment, tip, result.Folded)
		if e.Keeps(round) {
			n.disk.bases[e.Fragment][round] = tip
		}
	}
	n.disk.truncate(e.Fragment, tip.Round)
	if err := n.machine.Folded(n.w.now, e.Fragment, e.Job, tip, states); err != nil {
		n.w.fatalf("node %d: %v", n.index, err)
	}
}

func (n *node) storeOwn(e core.StoreOwn) {
	n.w.witness(e.Header)
	n.disk.putOwn(e)
	n.later(1, func() { n.machine.StoredOwn(n.w.now, e) })
}

func (n *node) storeDelta(e core.StoreDelta) {
	d := core.DeltaOf(e.ID, e.Header.Header)
	if err := n.w.cfg.params.CheckPayload(n.w.plan[d.Fragment], d, e.Payload); err != nil {
		n.machine.Invalid(n.w.now, e.ID, err)
		return
	}
	n.disk.put(e.ID, *e.Header, e.Payload)
	n.machine.Stored(n.w.now, e.ID)
}

// leave begins an ordered leave; the node stops when it may.
func (n *node) leave() {
	n.left = true
	n.do(func() { n.machine.Leave(n.w.now) })
}

// stop takes a node off the network, without a word.
func (n *node) stop() {
	for _, p := range n.w.nodes {
		n.w.disconnect(n, p)
	}
	n.up = false
}

// String shows a world in a failure.
func (w *world) String() string {
	var b strings.Builder
	for _, n := range w.nodes {
		r := n.machine.Rounds()
		fmt.Fprintf(&b, "node %d up %v phase %v state %v may %v steps %d finished %v flushed %v settled %v:",
			n.index, n.up, n.machine.Phase(), n.machine.State(), n.may, n.steps, n.finished, r.Flushed(), r.Settled())
		for p := range w.plan {
			steps, _ := r.Pending(p)
			fmt.Fprintf(&b, " [closed %d tip %d tokens %d end %d chain %x pending %d inflight %d]", r.Closed(p), r.Tip(p).Round, r.Tip(p).Tokens, r.Tip(p).EndRound, r.Tip(p).Chain[:3], steps, r.InFlight(p))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

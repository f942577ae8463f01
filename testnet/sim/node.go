package sim

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"

	"atoll/gossip"
	"atoll/gossip/hello"
	"atoll/gossip/limit"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/node/trace"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/oracle"
	"atoll/testnet/sim/memory"
)

// Times of a node beside the network, in ms. The alone time is a
// test profile's, ten times shorter than a real run's.
const (
	diskMs    = 2
	foldMs    = 5
	flushMs   = 500 // the index is committed so often, as node's status tick does
	aloneMs   = 3000
	restMs    = 1500 // a world in which nothing changes for so long is at rest
	redialMs  = 5000 // as node's redialEvery
	noticeMs  = 8000 // a transport takes so long to notice that nothing gets through
	dialDelay = 2    // round trips of a handshake
)

// Node is one process: a replica, and around it virtual time, wires, and a disk in
// memory.
type Node struct {
	w        *World
	spec     NodeSpec
	index    int
	key      ed25519.PrivateKey
	id       wire.PeerID
	founder  bool // its link names nobody: it trains from genesis
	linkless bool // nor the link of a founder that lost its disk
	disk     *memory.Ledger
	keyOnly  bool   // what the key signed before its disk was lost is not known yet
	wiped    bool   // its disk was lost, once or more
	contacts []int  // whom it dials again and again
	side     uint64 // the parts that it is in, as bits; see Partition
	liar     *liar  // nil for an honest node
	files    files  // that nodes give each other

	life
	admission
	wires
	access
	learning
	notes
	tally
}

// life is what begins anew at each start, and how the node stands between two.
type life struct {
	replica  *replica.Replica
	trace    *trace.Recorder // of this life; nil = nobody asked for one
	machine  *core.Machine   // of the replica
	limiter  *limit.Limiter  // of gossip
	up       bool
	restored bool  // its disk had something of the run
	answered bool  // one that its link names, or any if it names none, was connected
	gone     bool  // for good: lost, or left
	left     bool  // has begun to leave
	lives    int   // counts starts: what was under way in an earlier one is void
	started  int64 // by its own clock
	slow     Time
	skew     Time // of the clock since the last start
	slept    Time // what the clock does not count
	paused   Time // since when; 0 = it runs
	asleep   []func()
	may      bool
	finished bool
}

// wires are its connections and what is under way over them.
type wires struct {
	links   []*Node // neighbours, by index
	record  hello.Signed
	said    hello.Record
	refused map[int]bool         // peers that the handshake of this life refused, by index
	heard   map[wire.Digest]bool // headers that gossip brought in this life
	waiting map[uint64]*exchange // by handle
	calls   []*exchange          // requests that wait for an answer
	handle  uint64
	serving bool // a stream: what is folded meanwhile is for another node
}

// learning is the learner and its trainer, with an oracle that watches them.
type learning struct {
	learner  *outer.Learner
	trainer  Trainer
	scratch  []float32
	oracle   []*oracle.Oracle
	drafts   map[uint64]draftWork // own drafts that are not durable yet
	commands []func()             // of the machine to the learner, at the next step boundary
}

// notes are what the world's checkers keep of it.
type notes struct {
	ticks       int
	taken       []*outer.Tip // a snapshot that the local parameters have yet to stand on, by fragment
	idleFrom    Time         // since when it does not step though it is in, less what it slept; 0 = it steps
	idle        Time         // in which it stood still though the tokens of the budget were never made
	contributed Time         // when a delta of this life was first folded here
	firstSeq    uint64       // own deltas below it are of earlier lives
	planned     int          // steps that its deltas were to have when it last stepped
	plans       plans
	steppedAt   Time   // when it last stepped
	endedAt     Time   // when it last knew that the run is over
	late        uint64 // deltas that came late, in lives that ended
	bursts
	book   book
	damage damage
}

// bursts are the most rounds that closed between two looks of an attack test.
type bursts struct {
	burst          uint32
	looked         uint32 // rounds closed at the last look
	lookedInstalls int
}

// tally counts what a node did, over all its lives.
type tally struct {
	Steps     int   `json:"steps"`
	Installs  int   `json:"installs"` // of snapshots
	Refolds   int   `json:"refolds"`
	Unfolds   int   `json:"unfolds"`   // of own deltas that left the chain
	Returns   int   `json:"returns"`   // of own deltas that became final outside of it
	Discards  int   `json:"discards"`  // of own deltas folded on a lost chain
	Unwritten int   `json:"unwritten"` // drafts that could not be written
	BytesOut  int64 `json:"bytes_out"`
	BytesIn   int64 `json:"bytes_in"`
	PayloadIn int64 `json:"payload_in"` // of BytesIn, payloads that were asked for
}

// draftWork is a draft on its way to the disk.
type draftWork struct {
	fragment int
	tokens   uint64
}

func newNode(w *World, index int, spec NodeSpec, founder bool) *Node {
	var seed [ed25519.SeedSize]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(index)+1)
	key := ed25519.NewKeyFromSeed(seed[:])
	n := &Node{
		w: w, index: index, spec: spec, founder: founder, key: key, side: restSide, id: wire.PeerIDOf(key), disk: memory.New(len(w.plan)),
		life: life{slow: Time(max(spec.Slow, 1))}, notes: notes{book: newBook(len(w.plan))},
	}
	n.liar = newLiar(n)
	n.setLink()
	return n
}

// Machine is the protocol of this node, for reading. It is nil before the first start.
func (n *Node) Machine() *core.Machine { return n.machine }

// Index is the number of the node in faults and failures.
func (n *Node) Index() int { return n.index }

// Up says that the process runs.
func (n *Node) Up() bool { return n.up }

// clock is the time that the node's machine is told.
func (n *Node) clock() Time {
	t := n.w.now - Start
	return Start + t + n.skew + t*n.spec.DriftPPM/1e6 - n.slept
}

// boot makes the replica over what the disk holds.
func (n *Node) boot() {
	w := n.w
	n.up, n.may, n.finished, n.idleFrom = true, false, false, 0
	n.answered = false
	n.lives++
	n.slept, n.paused, n.asleep, n.skew = 0, 0, nil, n.spec.SkewMs
	n.refused, n.contributed = map[int]bool{}, 0
	n.commands, n.waiting = nil, map[uint64]*exchange{}
	n.heard, n.taken = map[wire.Digest]bool{}, nil
	n.drafts, n.calls, n.uplink.free = map[uint64]draftWork{}, nil, float64(w.now)
	n.started, n.gauge, n.limiter = n.clock(), gauge{}, nil
	n.enter()
	x := executor{n}
	n.trace = w.record(n)
	cfg := n.config()
	r, was, err := replica.New(n.trace.Wrap(replica.Config{
		Machine: cfg, Policy: n.policy(), Genesis: replica.Genesis{Encoded: []byte("genesis"), Tips: w.tips},
		Exec: x, Ledger: ledger{n.disk, n}, Net: x, Arithmetic: arithmetic{n}, Watcher: x, Blobs: blobs{n},
	}))
	if err != nil {
		n.broken("core", "%v", err)
		return
	}
	n.replica, n.firstSeq, n.restored = r, n.disk.NextSeq(), was.Saved != nil
	n.trainer = w.s.Task.Trainer(n.index, n.lives)
	n.learner = outer.NewLearner(w.s.Params, w.plan, n.trainer.Params(), was.Tips, n.ownPayload)
	n.scratch = make([]float32, len(n.trainer.Params()))
	n.oracle = nil
	for p, tip := range was.Tips {
		if !w.s.Lean {
			n.oracle = append(n.oracle, oracle.New(w.plan[p], w.s.Params.Codec, tip))
		}
	}
	if err := r.Start(n.clock(), cfg, was, n.trace.Learner(watched{n, was.Saved})); err != nil {
		n.broken("core", "%v", err)
		return
	}
	n.machine = r.Machine()
	n.recallBlobs()
	n.openBook()
	n.introduce()
	n.startTimers()
}

// policy is that of a process, with times ten times shorter. Large worlds do not look
// for damaged memory.
func (n *Node) policy() replica.Policy {
	p := replica.NodePolicy()
	p.TrustMemory, p.ChunksStayMs = n.w.s.Lean, chunksStay
	p.Source.FreshMs /= 10
	p.KeepBytes, p.LeaveWithinMs = n.w.s.Policy.KeepBytes, n.w.s.Policy.LeaveWithinMs
	return p
}

// chunksStay is how long the chunks of tips stay after the last one came, ten times
// shorter than in package node.
const chunksStay = 6000

func (n *Node) config() core.Config {
	cfg := n.unlimited()
	if n.limiter == nil {
		n.limiter = limit.New(cfg.Gossip.Limits())
	}
	cfg.Gossip.Limiter = n.limiter
	return cfg
}

func (n *Node) unlimited() core.Config {
	w, p := n.w, n.w.s.Params
	cfg := core.Config{
		Params: p, Plan: w.plan, Key: n.key, Run: w.run, Learner: !n.spec.Observer, Certificate: n.certified(),
		Alone: n.founder && (n.linkless || !n.keyOnly), Newcomer: !n.founder, AloneMs: aloneMs, KeyOnly: n.keyOnly, MostDeltas: w.s.Deltas,
		Gossip: gossip.Config{
			Members: n.members,

			Self: n.id, Key: n.key, Run: w.run, Incarnation: n.started, HeartbeatMinMs: w.s.HeartbeatMs, Common: n.disk.Common, Resume: n.disk.Fetching,
			WindowAccept: p.WindowAccept, WindowUnion: p.WindowUnion, TargetPeers: w.s.Degree,
			HasChunk:     n.disk.HasChunk,
			VerifyHeader: func(h wire.SignedHeader) error { return w.verifier.header(w.run, h) },
			OpenRecord:   w.verifier.open,
		},
	}
	if !n.founder {
		for _, i := range n.contacts {
			cfg.Gossip.Trusted = append(cfg.Gossip.Trusted, w.nodes[i].id)
		}
	}
	return cfg
}

// introduce makes the capability record of this life.
func (n *Node) introduce() {
	n.said = hello.Record{
		Protocol: hello.Protocol, Run: n.w.run, Author: n.id, Seq: uint64(n.lives), Role: hello.Learner, Trainer: hello.Builtin,
		Precision: "f32", Agent: "sim", Addrs: []string{addrOf(n.index)}, StartedMs: n.started,
	}
	if n.spec.Observer {
		n.said.Role, n.said.Trainer, n.said.Precision = hello.Observer, "", ""
	}
	if n.members != nil && !n.spec.Outsider {
		n.said.Certificate = n.certificate.Encode()
	}
	n.spec.Version.apply(&n.said)
	signed, err := n.spec.Version.sign(n, n.said)
	if err != nil {
		n.broken("sim", "record: %v", err)
	}
	n.record = signed
	n.machine.Step(n.clock(), gossip.OwnRecord{Signed: signed})
}

// startTimers begins to tick and to step, out of step with other nodes.
func (n *Node) startTimers() {
	w := n.w
	w.queue.push(event{at: w.now + Time(n.index)%w.s.TickMs, kind: eventTick, to: n, life: n.lives})
	if !n.spec.Observer {
		w.queue.push(event{at: w.now + 1 + w.rng.Int64N(w.s.StepMs), kind: eventStep, to: n, life: n.lives})
	}
	n.every(flushMs, n.disk.Commit)
	n.every(redialMs, n.redial)
	n.every(flushMs, n.tidy)
	if n.liar != nil {
		n.every(n.liar.everyMs(), n.liar.acts)
	}
}

// tidy drops what is of no use any more, and writes down what was traced.
func (n *Node) tidy() {
	_ = n.trace.Flush() // a buffer takes all
	n.replica.DropOldChunks()
	n.replica.Retain()
}

// every does something now and then for as long as this life lasts.
func (n *Node) every(ms Time, do func()) {
	life := n.lives
	n.w.after(ms, func() {
		if n.up && n.lives == life {
			if n.paused == 0 {
				do()
			}
			n.every(ms, do)
		}
	})
}

// do runs one input of this life and executes what it caused; a paused node
// does it when it goes on.
func (n *Node) do(input func()) {
	if !n.up {
		return
	}
	if n.paused != 0 {
		n.asleep = append(n.asleep, input)
		return
	}
	input()
	n.replica.Execute()
}

// later runs an input after ms, unless the node died meanwhile.
func (n *Node) later(ms Time, input func()) {
	life := n.lives
	n.w.after(ms, func() {
		if n.lives == life {
			n.do(input)
		}
	})
}

func (n *Node) tick(life int) {
	if !n.up || n.lives != life {
		return
	}
	if n.paused == 0 {
		perSecond := 1000 * float64(n.w.s.Task.Tokens()) / float64(n.stepMs())
		n.machine.SetLearning(uint64(n.Steps), n.book.trained, perSecond, 0, uint64(n.lives))
		before := n.machine.View().Phase()
		n.machine.Tick(n.clock())
		if before <= core.Fetching && n.machine.View().Phase() == core.Ready && !n.restored {
			n.w.checkBegins(n)
		}
		n.replica.Execute()
		if n.up && n.left && n.replica.LeftTooLong() {
			n.goes()
			return
		}
		if n.up && n.left && n.machine.View().MayLeave() {
			n.w.checkLeft(n)
			n.stop()
			n.gone = true
			return
		}
		n.w.checkTick(n)
	}
	n.w.queue.push(event{at: n.w.now + n.w.s.TickMs, kind: eventTick, to: n, life: life})
}

func (n *Node) stepMs() Time { return n.w.s.StepMs * n.slow }

// stepTimer takes a step every stepMs for as long as it may. Nothing but MayStep
// and the node's own death stops it.
func (n *Node) stepTimer(life int) {
	if !n.up || n.lives != life {
		return
	}
	if n.paused == 0 {
		n.step()
		n.replica.Execute()
	}
	n.w.queue.push(event{at: n.w.now + n.stepMs(), kind: eventStep, to: n, life: life})
}

func (n *Node) step() {
	n.boundary()
	if !n.may {
		return
	}
	if !n.w.s.Lean {
		copy(n.scratch, n.trainer.Params())
	}
	if err := n.trainer.Step(func() float64 { return n.machine.View().Progress(n.clock()) }); err != nil {
		n.broken("learns", "%v", err)
		return
	}
	for p := range n.oracle {
		n.oracle[p].Moved(n.scratch, n.trainer.Params())
	}
	tokens := n.w.s.Task.Tokens()
	n.Steps++
	n.steppedAt = n.w.now
	n.book.trained += uint64(tokens)
	n.replica.Stepped(tokens)
}

// command is done at the next step boundary.
func (n *Node) command(do func()) {
	n.commands = append(n.commands, do)
	if !n.may {
		n.later(1, n.boundary)
	}
}

func (n *Node) boundary() {
	for len(n.commands) > 0 {
		do := n.commands[0]
		n.commands = n.commands[1:]
		do()
	}
}

// stop takes a node off the network, without a word.
func (n *Node) stop() {
	for len(n.links) > 0 {
		n.w.disconnect(n, n.links[0])
	}
	n.up = false
	n.late += n.lateNow()
}

// broken records a broken promise. What becomes of a liar is no promise.
func (n *Node) broken(check, format string, args ...any) {
	if n.liar != nil {
		return
	}
	n.w.broken(check, "node %d: "+format, append([]any{n.index}, args...)...)
}

func addrOf(index int) string { return fmt.Sprintf("/ip4/10.0.0.1/tcp/%d", 1000+index) }

// indexOf is the inverse of addrOf, or -1.
func indexOf(addr string) int {
	var port int
	if _, err := fmt.Sscanf(addr, "/ip4/10.0.0.1/tcp/%d", &port); err != nil {
		return -1
	}
	return port - 1000
}

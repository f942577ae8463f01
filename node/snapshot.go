package node

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/hardware"
	"atoll/node/joinlink"
	"atoll/node/status"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// version is that of the tag, which the linker of a release puts here.
var version = "0.1"

// Agent is the program and version that peers see.
var Agent = "atoll/" + version

// publishStatus makes a new status for everyone who asks.
func (n *node) publishStatus() {
	n.keepCommon()
	if n.machine == nil {
		return
	}
	s := n.snapshot()
	s.History = n.view.history.Until(status.PointOf(s))
	n.latest.Store(&s)
	tips := n.tipList()
	n.latestTips.Store(&tips)
	if n.cfg.OnStatus != nil {
		n.cfg.OnStatus(s)
	}
}

func (n *node) lastStatus() status.Snapshot {
	if s := n.latest.Load(); s != nil {
		return *s
	}
	return status.Snapshot{Identity: status.Identity{
		Version: Agent, Self: hex.EncodeToString(n.self[:]), Started: n.started, At: time.Now(), State: "joining",
	}}
}

func (n *node) writeFinalStatus() {
	b, err := json.MarshalIndent(n.lastStatus(), "", "  ")
	if err == nil {
		err = n.cfg.disk.WriteFile(n.cfg.Dir, status.FinalFile, append(b, '\n'))
	}
	n.check("write final status", err)
}

func (n *node) snapshot() status.Snapshot {
	now := time.Now()
	s := status.Snapshot{
		Identity: n.whoAndWhat(now), Progress: n.progress(), Agreement: status.Agreement{Finished: n.finished},
		Limits: n.allowance.Status(now, n.machine.View().Resting()), Rejoined: n.rejoined, Events: slices.Clone(n.view.events),
		Process: status.Process{RSSBytes: hardware.RSSBytes(), Goroutines: runtime.NumGoroutine(), OpenFiles: hardware.OpenFiles()},
	}
	if !n.view.joined.IsZero() {
		s.JoinS = n.view.joined.Sub(n.started).Seconds()
	}
	s.Data = n.dataStatus()
	if s.Stage == "" && s.Data != nil && s.Data.Waiting {
		s.Stage = dataStage(s.Data)
	}
	n.fillTraining(&s)
	s.Plan = planStatus(n.genesis.Outer.H, n.machine.Rounds().Plan())
	n.fillChain(&s)
	n.fillAccount(&s)
	carried := n.host.Stats()
	n.fillNet(&s, carried)
	s.Peers = n.peers(now, s, carried)
	s.Alarms = status.AlarmsOf(s)
	return s
}

func (n *node) whoAndWhat(now time.Time) status.Identity {
	s := status.Identity{
		Version: Agent, Run: hex.EncodeToString(n.run[:]), Name: n.genesis.Name, Link: n.link().String(),
		Self: hex.EncodeToString(n.self[:]), Role: n.role(), State: n.machine.View().State().String(), Started: n.started, At: now,
	}
	switch {
	case n.machine.View().Paused():
		s.State, s.Stage = status.Paused, strings.Join(n.allowance.Why(), "; ")
	case s.State == wire.Joining.String():
		s.Stage = n.stage()
	default:
		if s.Stage, _ = n.machine.View().EndStage(); s.Stage == "" {
			s.Stage = n.learnerStage()
		}
	}
	return s
}

func (n *node) progress() status.Progress {
	g := n.genesis
	s := status.Progress{
		Model: g.ModelLabel(), Params: g.Params(), Optimizer: g.Inner.Optimizer, BudgetTokens: g.Outer.Budget,
		TokensFolded: n.machine.View().FoldedTokens(), TokensBeyond: n.beyond(), TokensPerS: n.view.speed.perSecond(),
		Step: int64(n.steps), TokensTrained: n.trained, ValAtTokens: n.evaluations.valAt,
	}
	if q := n.evaluations.quality; q.Bytes > 0 {
		s.ValBPB, s.ValBytes = q.BitsPerByte(), q.Bytes
	} else {
		s.ValLoss, s.ValTokens = q.Loss, q.Tokens
	}
	s.ETASeconds, s.LastDeltasS = n.eta(s), float64(n.machine.View().LastDeltasMs())/1000
	return s
}

// eta is how long the run takes from now on, in seconds; 0 where nobody can say. Once
// nobody has to step the tokens still missing are made, and it is for the links to bring them.
func (n *node) eta(s status.Progress) float64 {
	if waits, left := n.machine.View().EndStage(); waits != "" {
		return float64(left) / 1000
	}
	if left := float64(s.BudgetTokens) - float64(s.TokensFolded); left > 0 && s.TokensPerS > 0 {
		return left / s.TokensPerS
	}
	return 0
}

func (n *node) role() string {
	if n.cfg.Observe {
		return hello.Observer
	}
	return hello.Learner
}

func (n *node) link() joinlink.Link {
	link := joinlink.Short(n.run, n.ownAddrs(), n.publicPeers())
	link.Invite = n.invite
	return link
}

// learnerStage says what steps wait for.
func (n *node) learnerStage() string {
	if n.external != nil && n.external.Absent() {
		return "waits for " + n.attaches()
	}
	if at := n.tuning.Load(); at != nil {
		return *at
	}
	return n.slow.text()
}

// stage says how far a joiner is.
func (n *node) stage() string {
	text, done := n.machine.View().JoinStage()
	if done > 0 {
		return fmt.Sprintf("%s (%.0f %%)", text, 100*done)
	}
	return text
}

// showStage tells of a stage before there is a machine to ask.
func (n *node) showStage(text string) {
	if n.cfg.OnStatus != nil {
		s := n.lastStatus()
		s.Stage = text
		n.cfg.OnStatus(s)
	}
}

func (n *node) fillTraining(s *status.Snapshot) {
	if n.train == nil {
		return
	}
	p := n.train.stats()
	s.TrainLoss, s.LearningRate, s.Time = p.loss, p.rate, p.account
}

// planStatus says how many steps deltas are planned to have, and what sets that.
func planStatus(h int, p rounds.Plan) status.Plan {
	s := status.Plan{H: h, Planned: p.Steps, Real: p.Real, Bound: status.BoundRun}
	switch {
	case p.Thin:
		s.Bound = status.BoundThin
	case p.Steps > p.Common:
		s.Bound = status.BoundOwnLink
	case p.Common > h:
		s.Bound = status.BoundLinks
	}
	return s
}

func (n *node) fillChain(s *status.Snapshot) {
	r := n.machine.Rounds()
	chain, state := n.machine.View().Digests()
	s.ChainDigest, s.StateDigest = hex.EncodeToString(chain[:]), hex.EncodeToString(state[:])
	now := n.clock.Now()
	agreed, _ := n.machine.Gossip().Chains().Agreed(now)
	s.Agreed = agreed && len(n.machine.Gossip().Chains().OtherStates(now)) == 0
	for p := range n.plan {
		tip := r.Fragment(p).Tip()
		_, unpublished := r.Fragment(p).Pending()
		s.Fragments = append(s.Fragments, status.Fragment{
			Closed: r.Fragment(p).Closed(), TipRound: tip.Round, Tokens: tip.Tokens, Params: n.plan[p].Len,
			Contributors: n.view.contributors[p], EndRound: tip.EndRound, Unpublished: unpublished,
			Open: openStatus(r.Fragment(p), now), Chains: n.chains(p),
		})
	}
}

// openStatus says what the open round of a fragment waits for.
func openStatus(v rounds.View, now rounds.Time) status.Open {
	why := v.Why(now)
	o := status.Open{
		Round: v.Closed() + 1, Why: why.String(), Text: why.Text(),
		WaitedS: float64(why.Waited) / 1000, MostS: float64(why.Most) / 1000,
	}
	if why.For != (outer.Author{}) {
		o.For = hex.EncodeToString(why.For[:])
	}
	return o
}

// chainsShown is how many rounds a status has for comparison: nodes that are
// further apart are not up to date with each other.
const chainsShown = 4

// chains are the chain digests of a fragment after its last rounds.
func (n *node) chains(p int) (out []status.ChainAt) {
	r := n.machine.Rounds()
	last := r.Fragment(p).Tip().Round
	for round := last - min(last, chainsShown-1); round <= last; round++ {
		if link, ok := r.Fragment(p).Link(round); ok {
			out = append(out, status.ChainAt{Round: round, Digest: hex.EncodeToString(link.Chain[:])})
		}
	}
	return out
}

func (n *node) fillNet(s *status.Snapshot, st p2p.Stats) {
	s.Net = status.Net{SentBytes: st.Sent, ReceivedBytes: st.Received, ByProtocol: map[string]uint64{}}
	s.Net.Reach = n.reach(st)
	s.Net.Dropped = st.Dropped.Messages + st.Dropped.Unchecked + st.Dropped.Outbound
	for name, t := range st.Protocols {
		s.Net.ByProtocol[name] = t.Received
	}
}

// peers lists everyone this node knows of, itself first, then by id, then
// those who were refused.
func (n *node) peers(now time.Time, s status.Snapshot, carried p2p.Stats) []status.Peer {
	rec := n.record.get()
	self := n.peerOf(n.self, rec)
	self.Self, self.State, self.Steps, self.Tokens = true, s.State, n.steps, n.trained
	self.TokensPerS, self.Bits, self.Reason = 0, float64(n.evaluations.bits()), strings.Join(n.allowance.Why(), "; ")
	self.Upload, self.UploadFull = n.host.Upload()
	if n.train != nil {
		self.TokensPerS = n.train.stats().perSecond
	}
	out := []status.Peer{self}
	for _, v := range n.machine.Gossip().Peers().All() {
		p := n.peerOf(v.ID, v.Record)
		p.Addr = n.view.addrs[v.ID]
		if path, ok := n.host.Path(v.ID); ok {
			n.pathOf(&p, path)
		}
		p.State, p.Reason = "connected", v.Refused
		if v.Heartbeat != nil {
			p.State, p.Steps, p.Tokens, p.TokensPerS = v.Heartbeat.State.String(), v.Heartbeat.Steps, v.Heartbeat.Tokens, v.Heartbeat.TokensPerSecond
			p.Upload, p.UploadFull, p.Bits = v.Heartbeat.Upload, v.Heartbeat.Full, float64(v.Heartbeat.Bits)
			if v.Heartbeat.Paused {
				p.State = status.Paused
			}
		}
		if v.LastHeard > 0 {
			p.LagS = float64(n.clock.Now()-int64(v.LastHeard)) / 1000
		}
		with := carried.Peers[v.ID]
		p.SentBytes, p.ReceivedBytes = with.Sent, with.Received
		p.HeartbeatGapS = n.view.gaps.longestS(v.ID)
		if v.Silent {
			p.State = fmt.Sprintf("silent %.0f s", p.LagS)
		}
		out = append(out, p)
	}
	return n.addRefused(n.addShares(out))
}

func (n *node) addRefused(out []status.Peer) []status.Peer {
	refused := slices.SortedFunc(slices.Values(n.view.refused), func(a, b status.Peer) int { return strings.Compare(a.Addr, b.Addr) })
	return append(out, refused...)
}

func (n *node) peerOf(id wire.PeerID, r hello.Record) status.Peer {
	return status.Peer{
		ID: hex.EncodeToString(id[:]), Guest: n.members.Guest(id), Role: r.Role, Trainer: r.Trainer, Precision: r.Precision,
		Hardware: hardwareOf(r), MeasuredPerS: r.TokensPerSecond, TokensPerStep: r.TokensPerStep,
		TokensFolded: n.foldedBy(id), Weight: n.view.weights[id],
	}
}

// foldedBy is the parameter-weighted mean over fragments of an author's folded tokens that count, as far as this
// node folded them itself: none of a guest. It is rounded, as there are no parts of tokens.
func (n *node) foldedBy(id wire.PeerID) float64 {
	return math.Round(n.plan.Mean(func(p int) uint64 { return n.view.ledger[p].Counted(id) }))
}

// beyond is the same of the tokens of all authors that do not count.
func (n *node) beyond() uint64 {
	return uint64(math.Round(n.plan.Mean(func(p int) uint64 { return n.view.ledger[p].Beyond() })))
}

func (n *node) addShares(peers []status.Peer) []status.Peer {
	var sum float64
	for _, p := range peers {
		sum += p.TokensFolded
	}
	for i := range peers {
		if sum > 0 {
			peers[i].Share = peers[i].TokensFolded / sum
		}
		peers[i].Trust = n.trust(peers[i].ID)
	}
	return peers
}

// trust is for how much of its weight a node counts, the mean over fragments by their values.
func (n *node) trust(id string) float64 {
	var author wire.PeerID
	if author.UnmarshalText([]byte(id)) != nil {
		return 0 // nobody connected yet, whose key is not known
	}
	const parts = 10_000
	return n.plan.Mean(func(p int) uint64 {
		return uint64(parts * n.machine.Rounds().Fragment(p).Tip().Trust(outer.Author(author)))
	}) / parts
}

func hardwareOf(r hello.Record) string {
	var parts []string
	for _, d := range r.Devices {
		if d.Count > 1 {
			parts = append(parts, fmt.Sprintf("%d x %s", d.Count, d.Name))
		} else {
			parts = append(parts, d.Name)
		}
	}
	return strings.Join(parts, ", ")
}

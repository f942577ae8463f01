package show

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"atoll/gossip"
	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/node/authors"
	"atoll/node/status"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// Snapshot is what a node shows of itself, but for the history of its run.
func Snapshot(v View) status.Snapshot {
	w := v.Screen
	s := status.Snapshot{
		Identity: v.whoAndWhat(), Progress: v.progress(), Agreement: status.Agreement{Finished: v.Finished},
		Limits: v.Limits, Rejoined: v.Rejoined, Events: w.Events(), Process: v.Process,
	}
	if !w.joined.IsZero() {
		s.JoinS = w.joined.Sub(v.Started).Seconds()
	}
	s.Data = v.Data
	if s.Stage == "" && s.Data != nil && s.Data.Waiting {
		s.Stage = dataStage(s.Data)
	}
	if l := v.Learner; l != nil {
		s.TrainLoss, s.LearningRate, s.Time = l.Loss, l.Rate, l.Time
	}
	s.Plan = planStatus(v.Genesis.Outer.H, v.Rounds.Plan())
	v.fillChain(&s)
	s.Account = v.account()
	s.Net = v.Net
	s.Net.UpPerS, s.Net.DownPerS = w.up.perSecond(), w.down.perSecond()
	s.Peers = v.peers(s)
	s.ETASeconds = v.eta(s)
	s.History = w.History(s)
	s.Alarms = status.AlarmsOf(s)
	return s
}

// dataStage says what a learner waits for.
func dataStage(s *status.Data) string {
	if s.Next == "" {
		return "waiting for data"
	}
	return "waiting for data: " + s.Next
}

func (v View) whoAndWhat() status.Identity {
	s := status.Identity{
		Version: v.Version, Run: hex.EncodeToString(v.Run[:]), Name: v.Genesis.Name, Link: v.Link, LetsIn: v.LetsIn,
		Self: hex.EncodeToString(v.Self[:]), Role: v.Role, State: v.Machine.State().String(), Disk: v.Disk, Started: v.Started, At: v.At,
	}
	switch {
	case v.Machine.Paused():
		s.State, s.Stage = status.Paused, strings.Join(v.Limits.Why, "; ")
	case s.State == wire.Joining.String():
		s.Stage = v.stage()
	default:
		if s.Stage, _ = v.Machine.EndStage(); s.Stage == "" {
			s.Stage = v.Waits
		}
	}
	return s
}

func (v View) progress() status.Progress {
	g := v.Genesis
	s := status.Progress{
		Model: g.ModelLabel(), Brought: !g.BuiltIn(), Params: g.Params(), Optimizer: g.Inner.Optimizer, BudgetTokens: g.Outer.Budget,
		TokensFolded: v.Machine.FoldedTokens(), TokensBeyond: v.beyond(), TokensPerS: v.Screen.speed.perSecond(),
		Step: int64(v.Steps), TokensTrained: v.Trained, ValAtTokens: v.Quality.At,
	}
	if q := v.Quality; q.Bytes > 0 {
		s.ValBPB, s.ValBytes = q.BitsPerByte, q.Bytes
	} else {
		s.ValLoss, s.ValTokens = q.Loss, q.Tokens
	}
	s.LastDeltasS = float64(v.Machine.LastDeltasMs()) / 1000
	return s
}

// eta is how long the run takes from now on, in seconds; 0 where nobody can say. Once nobody has to step the tokens still missing are
// made, and it is for the links to bring them. Until then it goes by how fast those train who are here and count, and by what they
// have not made yet: what was folded in the last minute says little, as rounds close one by one.
func (v View) eta(s status.Snapshot) float64 {
	if waits, left := v.Machine.EndStage(); waits != "" {
		return float64(left) / 1000
	}
	perSecond := 0.0
	for _, p := range s.Peers {
		if p.Here() && p.State != status.Paused && !p.Guest {
			perSecond += p.TokensPerS
		}
	}
	left, deltasMs := v.Machine.Missing(v.Now)
	if left == 0 || perSecond == 0 || v.At.Sub(v.Started) < firstEstimate || s.State == wire.Joining.String() || s.Condition().Word == status.CutOff {
		return 0
	}
	return left/perSecond + float64(deltasMs)/1000
}

// firstEstimate is how long a node runs before it says how long the run takes: those that begin with it are there by then, and step at
// the speed that they keep.
const firstEstimate = 15 * time.Second

// stage says how far a joiner is.
func (v View) stage() string {
	if v.Machine.Unanswered() && v.Waits != "" {
		return v.Waits
	}
	text, done := v.Machine.JoinStage()
	if done > 0 {
		return fmt.Sprintf("%s (%.0f %%)", text, 100*done)
	}
	return text
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

func (v View) fillChain(s *status.Snapshot) {
	r := v.Rounds
	chain, state := v.Machine.Digests()
	s.ChainDigest, s.StateDigest = hex.EncodeToString(chain[:]), hex.EncodeToString(state[:])
	agreed, _ := v.Chains.Agreed(v.Now)
	s.Agreed = agreed && len(v.Chains.OtherStates(v.Now)) == 0
	for p := range v.Layout {
		tip := r.Fragment(p).Tip()
		_, unpublished := r.Fragment(p).Pending()
		s.Fragments = append(s.Fragments, status.Fragment{
			Closed: r.Fragment(p).Closed(), TipRound: tip.Round, Tokens: tip.Tokens, Params: v.Layout[p].Len,
			Contributors: v.Screen.contributors[p], EndRound: tip.EndRound, Unpublished: unpublished,
			Open: openStatus(r.Fragment(p), v.Now), Chains: v.chains(p),
		})
	}
}

// openStatus says what the open round of a fragment waits for.
func openStatus(f rounds.View, now rounds.Time) status.Open {
	why := f.Why(now)
	o := status.Open{
		Round: f.Closed() + 1, Why: why.String(), Text: why.Text(),
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
func (v View) chains(p int) (out []status.ChainAt) {
	r := v.Rounds
	last := r.Fragment(p).Tip().Round
	for round := last - min(last, chainsShown-1); round <= last; round++ {
		if link, ok := r.Fragment(p).Link(round); ok {
			out = append(out, status.ChainAt{Round: round, Digest: hex.EncodeToString(link.Chain[:])})
		}
	}
	return out
}

// peers lists whom the run has: this node first, then who is here or trained, by id, then those who were refused.
func (v View) peers(s status.Snapshot) []status.Peer {
	self := v.peerOf(v.Self, v.Record)
	self.Name = v.Name
	self.Self, self.State, self.Steps, self.Tokens = true, s.State, v.Steps, v.Trained
	if _, out := v.Members.OutBy(v.Self); out {
		self.State = status.Revoked
	}
	self.TokensPerS, self.Bits, self.Reason = 0, float64(v.Quality.Bits), strings.Join(v.Limits.Why, "; ")
	self.Upload, self.UploadFull = v.Upload, v.UploadFull
	if v.Learner != nil {
		self.TokensPerS = v.Learner.PerSecond
	}
	known := map[wire.PeerID]Peer{}
	authors.Each(v.Screen.ledger, func(id wire.PeerID) { known[id] = Peer{PeerView: gossip.PeerView{ID: id}} })
	for _, with := range v.Peers {
		known[with.ID] = with
	}
	delete(known, v.Self)
	out := []status.Peer{self}
	for _, id := range slices.SortedFunc(maps.Keys(known), wire.PeerID.Compare) {
		if p := v.peer(known[id]); p.State != "" {
			out = append(out, p)
		}
	}
	out = v.addRefused(v.addShares(out, float64(s.TokensFolded)))
	status.Label(out)
	return out
}

// peer is another node, with no state if it is nobody.
func (v View) peer(with Peer) status.Peer {
	p := v.peerOf(with.ID, with.Record)
	p.Addr, p.Reason = v.Screen.addrs[with.ID], with.Refused
	if with.Path != nil {
		pathOf(&p, *with.Path)
	}
	word, revoked := v.Members.OutBy(with.ID)
	if revoked {
		p.Reason = word
	}
	k := status.Known{Trained: p.Trained, Revoked: revoked, Connected: with.Connected, Silent: with.Silent}
	if before, heard := v.Screen.before[p.ID]; heard {
		k.Heard, k.Leaves, k.For = true, before.Leaves, v.At.Sub(time.UnixMilli(before.AtMs))
		p.Name = before.Name
	}
	if with.Name != "" {
		p.Name = with.Name
	}
	if with.Heard {
		k.Heard, k.For = true, time.Duration(v.Now-int64(with.LastHeard))*time.Millisecond
	}
	if b := with.Heartbeat; b != nil {
		k.Says, k.Leaves = b.State.String(), b.State == wire.Leaving
		if b.Paused {
			k.Says = status.Paused
		}
		p.Steps, p.Tokens, p.Upload, p.UploadFull, p.Bits = b.Steps, b.Tokens, b.Upload, b.Full, float64(b.Bits)
	}
	p.State, p.Faded = k.Standing()
	if b := with.Heartbeat; b != nil && !p.Away() {
		p.TokensPerS = b.TokensPerSecond
	}
	p.LagS = max(0, k.For.Seconds())
	p.SentBytes, p.ReceivedBytes = with.Sent, with.Received
	p.HeartbeatGapS = v.Screen.gaps.longestS(with.ID)
	return p
}

// pathOf says how a peer is reached.
func pathOf(p *status.Peer, path Path) {
	p.Addr, p.Link, p.Relay = path.Addr, status.LinkDirect, path.Relay
	switch {
	case path.Punching:
		p.Link = status.LinkPunching
	case path.Relay != "":
		p.Link = status.LinkRelayed
	}
}

// addRefused adds who was refused lately. Of one that is in the list already it says why: a key has one row.
func (v View) addRefused(out []status.Peer) []status.Peer {
	refused := slices.SortedFunc(slices.Values(v.Screen.refused), func(a, b refusal) int { return strings.Compare(a.Addr, b.Addr) })
	for _, r := range refused {
		if v.At.Sub(r.at) >= refusedFor {
			continue
		}
		i := slices.IndexFunc(out, func(p status.Peer) bool { return p.ID == r.ID })
		if i < 0 {
			out = append(out, r.Peer)
			continue
		}
		p := &out[i]
		if p.State == status.Gone {
			p.State, p.Faded = status.Refused, false
		}
		p.Reason = cmp.Or(p.Reason, r.Reason)
	}
	return out
}

func (v View) peerOf(id wire.PeerID, r hello.Record) status.Peer {
	return status.Peer{
		ID: hex.EncodeToString(id[:]), Guest: v.Members.Guest(id), Role: r.Role, Trainer: r.Trainer, Precision: r.Precision,
		Hardware: hardwareOf(r), MeasuredPerS: r.TokensPerSecond, TokensPerStep: r.TokensPerStep,
		TokensFolded: v.foldedBy(id), Weight: v.Screen.weights[id],
		Trained: slices.ContainsFunc(v.Screen.ledger, func(a authors.Tokens) bool { return a.Made(id) > 0 }),
	}
}

// foldedBy is the parameter-weighted mean over fragments of an author's folded tokens that count, as far as this
// node folded them itself: none of a guest. It is rounded, as there are no parts of tokens.
func (v View) foldedBy(id wire.PeerID) float64 {
	return math.Round(v.Layout.Mean(func(p int) uint64 { return v.Screen.ledger[p].Counted(id) }))
}

// beyond is the same of the tokens of all authors that do not count.
func (v View) beyond() uint64 {
	return uint64(math.Round(v.Layout.Mean(func(p int) uint64 { return v.Screen.ledger[p].Beyond() })))
}

// addShares says which part of all that is folded each made. A node that came late does not know who made what it fetched.
func (v View) addShares(peers []status.Peer, folded float64) []status.Peer {
	sum := 0.0
	for _, p := range peers {
		sum += p.TokensFolded
	}
	sum = max(sum, folded)
	joins := v.Machine.Joins()
	for i := range peers {
		if peers[i].ShareUnknown = joins; sum > 0 && !joins {
			peers[i].Share = peers[i].TokensFolded / sum
		}
		peers[i].Trust = v.trust(peers[i].ID)
	}
	return peers
}

// trust is for how much of its weight a node counts, the mean over fragments by their values.
func (v View) trust(id string) float64 {
	var author wire.PeerID
	if author.UnmarshalText([]byte(id)) != nil {
		return 0 // nobody connected yet, whose key is not known
	}
	const parts = 10_000
	return v.Layout.Mean(func(p int) uint64 {
		return uint64(parts * v.Rounds.Fragment(p).Tip().Trust(outer.Author(author)))
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

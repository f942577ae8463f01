package baseline

import (
	"encoding/hex"
	"fmt"
	"runtime"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/node"
	"atoll/node/genesis"
	"atoll/node/hardware"
	"atoll/node/joinlink"
	"atoll/node/status"
)

// state is what the member holds, and whether that is the model of the run.
func (m *Member) state() (Label, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.label, m.final
}

// snapshot is the process's status, with the fields that a baseline has.
func (p *process) snapshot() status.Snapshot {
	now, g, run := time.Now(), p.genesis, p.genesis.RunID()
	self := wire.PeerIDOf(p.key)
	traffic := p.host.Stats()
	s := status.Snapshot{
		Identity: status.Identity{
			Version: node.Agent, Run: hex.EncodeToString(run[:]), Name: g.Name, Self: hex.EncodeToString(self[:]),
			Link: joinlink.Link{Run: run, Peers: p.host.Addrs()[:1]}.String(), Role: hello.Learner, Started: p.started, At: now,
		},
		Progress: status.Progress{Params: g.Model.Params(), Optimizer: g.Inner.Optimizer, BudgetTokens: g.Outer.Budget},
		Net:      status.Net{SentBytes: traffic.Sent, ReceivedBytes: traffic.Received},
		Process:  status.Process{RSSBytes: hardware.RSSBytes(), Goroutines: runtime.NumGoroutine(), OpenFiles: hardware.OpenFiles()},
	}
	p.member.account.fill(&s, now)
	p.member.fill(&s, g)
	s.StateDigest = p.digest
	s.Peers = []status.Peer{{
		ID: s.Self, Self: true, Role: s.Role, State: s.State, Hardware: hardware.CPUName(), Trainer: "builtin", Precision: "f32",
		Steps: uint64(s.Step), Tokens: s.TokensTrained, TokensPerS: p.member.account.perSecond(now),
		TokensPerStep: g.StepTokens(),
	}}
	return s
}

// fill puts into a status what the member knows of the run.
func (m *Member) fill(s *status.Snapshot, g genesis.Genesis) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.State, s.Finished, s.TokensFolded = m.phase, m.final, m.label.Tokens
	if m.phase == "training" {
		s.Stage = fmt.Sprintf("round %d, %d in view %d", m.label.Round, len(m.view.Members), m.view.Number)
	}
	if m.final {
		s.Events = []status.Event{{At: m.ended, Kind: "finished", Text: "the run is over: this state is its model"}}
	}
	f := status.Fragment{Closed: uint32(m.label.Round), Params: g.Model.Params(), Tokens: m.label.Tokens, Contributors: len(m.view.Members)}
	for _, l := range m.trail {
		f.Chains = append(f.Chains, status.ChainAt{Round: uint32(l.Round), Digest: fmt.Sprintf("view %d", l.View)})
	}
	s.Fragments = []status.Fragment{f}
}

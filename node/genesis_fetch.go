package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/joinlink"
	"atoll/node/preflight"
	"atoll/node/status"
)

// ErrNoPeers says that no peer of the link could be reached.
var ErrNoPeers = errors.New("no peer of the join link answered")

// Times and bounds of the search for a peer that gives the genesis.
const (
	// askAgain is the pause before one that failed is asked again.
	askAgain = time.Second
	// discoverEvery is how often this node looks where all runs meet: at once, as a link may be
	// old, and then a few times within the time that a join has.
	discoverEvery = 20 * time.Second
	// othersWithin is how long somebody else may be found once all that the link names have
	// refused: an answer by multicast and a search in the DHT.
	othersWithin = 10 * time.Second
	// firstWord is when people hear why nobody may have answered yet, and what to do: later again where that says something new.
	firstWord = 4 * time.Second
	// maxAsked bounds the peers that are asked at a time: those of a link, those remembered,
	// and as many that were heard of.
	maxAsked = 3 * joinlink.MaxPeers
)

// learnGenesis asks peers for the genesis, unless it is known.
func (n *node) learnGenesis(ctx context.Context) error {
	if n.genesis.Rules != 0 {
		return nil
	}
	if len(n.dials) == 0 && n.cfg.Profile == p2p.Local {
		return fmt.Errorf("there is no genesis in %s and the link names no peer; pass a link with an address, or --peer ADDR", n.cfg.Dir)
	}
	raw, err := n.askGenesis(ctx)
	if err != nil {
		return fmt.Errorf("join run %v: %w", n.run, err)
	}
	n.genesis, err = genesis.Decode(raw)
	n.told = true
	return err
}

// search asks all who may know the genesis at the same time, until one gives it: those of the
// link, the relays that they are behind, those that an earlier start knew, and who is
// heard of meanwhile.
type search struct {
	n        *node
	ctx      context.Context
	work     sync.WaitGroup
	answers  chan answer
	asked    map[wire.PeerID]bool
	failures map[string]error // by address
}

// answer is what came of asking a peer.
type answer struct {
	from p2p.Hint
	raw  []byte
	err  error
}

// askGenesis returns the document of the first peer that has it. It fails when all that are
// known refuse, or when the time is over.
func (n *node) askGenesis(parent context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(parent, n.cfg.JoinWithin)
	defer cancel()
	s := &search{n: n, ctx: ctx, answers: make(chan answer), asked: map[wire.PeerID]bool{}, failures: map[string]error{}}
	defer s.work.Wait()
	defer cancel()
	for _, p := range byPeer(joinlink.WithRelays(slices.Concat(n.dials, n.met))) {
		s.ask(p)
	}
	raw, err := s.run()
	if err == nil || parent.Err() == nil {
		return raw, err
	}
	return nil, parent.Err()
}

// ask begins to ask a peer.
func (s *search) ask(p p2p.Hint) {
	if p.ID == s.n.self || s.asked[p.ID] || len(s.asked) >= maxAsked {
		return
	}
	s.asked[p.ID] = true
	s.work.Go(func() {
		for s.ctx.Err() == nil {
			raw, err := s.n.genesisFrom(s.ctx, p)
			select {
			case s.answers <- answer{p, raw, err}:
			case <-s.ctx.Done():
				return
			}
			select {
			case <-time.After(askAgain):
			case <-s.ctx.Done():
			}
		}
	})
}

func (s *search) run() ([]byte, error) {
	s.n.showStage("asking for the genesis at " + addresses(len(s.asked)))
	discover := time.NewTicker(discoverEvery)
	defer discover.Stop()
	s.n.host.Discover(s.n.discoveryPoints())
	lonely, told := time.NewTimer(min(firstWord, s.n.cfg.AloneAfter)), ""
	defer lonely.Stop()
	wait := othersWithin
	if s.n.cfg.Profile == p2p.Local {
		wait = 0 // nobody else is found there
	}
	began := time.Now()
	for {
		select {
		case a := <-s.answers:
			if a.err == nil {
				s.n.log.Info("has the genesis", "from", a.from.Addrs[0])
				s.n.remain(a.from.Addrs)
				return a.raw, nil
			}
			if errors.Is(a.err, p2p.ErrDuplicateKey) {
				return nil, duplicateKeyError(a.from.Addrs[0] + " is connected to it")
			}
			s.failed(a)
			if s.n.shutOut(a.err) {
				return nil, shownReason{a.err}
			}
			if err := allRefused(s.failures, len(s.asked)); err != nil && time.Since(began) >= wait {
				return nil, err
			}
		case e := <-s.n.host.Events():
			s.n.keepEarly(e)
			if found, ok := e.(p2p.Hint); ok {
				s.ask(found)
			}
		case <-discover.C:
			s.n.host.Discover(s.n.discoveryPoints())
		case <-lonely.C:
			if why := s.n.whyAlone(s.failures); why != told {
				told = why
				s.n.log.Warn("nobody of the run answers yet: " + why)
			}
			lonely.Reset(s.n.cfg.AloneAfter)
		case <-s.ctx.Done():
			return nil, s.noPeers()
		}
	}
}

// failed records a failure, and logs one that says something new.
func (s *search) failed(a answer) {
	addr := a.from.Addrs[0]
	if known := s.failures[addr]; known == nil || known.Error() != a.err.Error() {
		s.n.log.Warn("ask for the genesis, trying on: "+preflight.Plain(addr, a.err), "addr", addr)
	}
	s.failures[addr] = a.err
}

func (s *search) noPeers() error {
	within := status.Duration(s.n.cfg.JoinWithin)
	if len(s.failures) == 0 {
		return fmt.Errorf("%w within %v: the link names none, and none is on this network; pass a link with an address, or --peer ADDR", ErrNoPeers, within)
	}
	return fmt.Errorf("%w within %v; tried %s; is one of them running, and can this machine reach it?", ErrNoPeers, within, tried(s.failures))
}

// shutOut reports whether all nodes of the run repeat a refusal: the invite has expired, or the owner who signed it has revoked it.
func (n *node) shutOut(err error) bool {
	c, known := n.members.Find(n.id)
	return known && errors.Is(err, p2p.ErrNotAdmitted) && (c.Invite.Expired(time.Now().UnixMilli()) || c.Revoked(n.run, err.Error()))
}

// allRefused is one of the refusals if all that were asked refused, and nobody is left who
// might still answer. Where one does not admit this node, nobody waits for those that do not answer; one that does may know of fewer
// uses of the invite, and let it in.
func allRefused(failures map[string]error, asked int) (refused error) {
	if len(failures) < asked {
		return nil
	}
	for _, err := range failures {
		if errors.Is(err, p2p.ErrNotAdmitted) {
			return shownReason{err}
		}
	}
	for _, err := range failures {
		if refusal := (*hello.Refusal)(nil); !errors.As(err, &refusal) && !errors.Is(err, p2p.ErrRefusedByPeer) {
			return nil
		}
		refused = shownReason{err}
	}
	return refused
}

// addresses is a number of them.
func addresses(n int) string {
	if n == 1 {
		return "1 address"
	}
	return fmt.Sprintf("%d addresses", n)
}

// tried says what came of each address.
func tried(failures map[string]error) string {
	var parts []string
	for addr, err := range failures {
		parts = append(parts, addr+": "+preflight.Plain(addr, err))
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// genesisFrom returns the bytes of the genesis whose hash is the RunID, from a peer.
func (n *node) genesisFrom(ctx context.Context, p p2p.Hint) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := n.host.DialPeer(ctx, p.ID, p.Addrs); err != nil {
		return nil, err
	}
	req := wire.Request{Kind: wire.GetGenesis, Run: n.run}.Encode()
	raw, err := n.host.Call(ctx, p.ID, req, wire.GetGenesis.MaxResponse())
	if err != nil {
		return nil, err
	}
	b, err := wire.OpenGenesis(n.run, raw)
	if err != nil {
		return nil, fmt.Errorf("ask %s for the genesis: %w", p.Addrs[0], err)
	}
	return b, nil
}

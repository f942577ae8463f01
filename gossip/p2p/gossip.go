package p2p

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/limit"
	"atoll/gossip/member"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
)

// topicName is the run's topic: nodes of other runs are not even subscribed.
func topicName(run wire.RunID) string {
	return "/atoll/" + hex.EncodeToString(run[:]) + "/1"
}

// gossipPrefix begins the protocols of gossipsub.
const gossipPrefix = "/meshsub/"

// messageID makes equal bytes one message, no matter who published them.
func messageID(m *pb.Message) string {
	id := wire.Sum(m.GetData())
	return string(id[:])
}

// startGossip joins the topic. Its goroutines end with h.ctx.
func (h *Host) startGossip() error {
	topic := topicName(h.cfg.Run)
	ps, err := pubsub.NewGossipSub(h.ctx, gatedHost{h.host, h},
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign), // messages are signed inside
		pubsub.WithNoAuthor(),
		pubsub.WithDefaultValidator(h.receive, pubsub.WithValidatorInline(true)),
		pubsub.WithMessageIdFn(messageID),
		pubsub.WithMaxMessageSize(wire.MaxMessage+maxEnvelope),
		pubsub.WithPeerOutboundQueueSize(outboundQueue),
		pubsub.WithValidateQueueSize(validateQueue),
		pubsub.WithSeenMessagesTTL(seenFor),
		pubsub.WithFloodPublish(true),
		pubsub.WithGossipSubParams(meshParams(h.cfg.Profile)),
		pubsub.WithPeerScore(h.scoring(topic)),
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(pubsub.NewAllowlistSubscriptionFilter(topic), 1)),
		pubsub.WithRawTracer(h.tracer),
		pubsub.WithAppSpecificRpcInspector(h.inspect),
		pubsub.WithLogger(h.log.With("system", "pubsub")),
		pubsub.WithRPCLogger(h.log.With("system", "pubsub/rpc")),
	)
	if err != nil {
		return fmt.Errorf("start gossip: %w", err)
	}
	if err := ps.RegisterTopicValidator(topic, h.passOn, pubsub.WithValidatorConcurrency(passing)); err != nil {
		return fmt.Errorf("start gossip: %w", err)
	}
	if h.topic, err = ps.Join(topic); err != nil {
		return fmt.Errorf("join topic %s: %w", topic, err)
	}
	if _, err = h.topic.Relay(); err != nil { // nothing subscribes: take has each message before it is passed on
		return fmt.Errorf("take part in %s: %w", topic, err)
	}
	return nil
}

// meshParams keeps libp2p's mesh of 6 (5 to 12), which a run of up to 13 nodes
// fills as a full graph, and hears of lost messages from IHAVE within a second.
//
// On the internet a node may be all that others have: a relay, which passes on what the nodes
// say that reach each other through it alone (see detour). It turns away none of them: who is
// in no mesh hears of a part of the messages, and late.
func meshParams(profile string) pubsub.GossipSubParams {
	p := pubsub.DefaultGossipSubParams()
	p.PruneBackoff = 10 * time.Second // nodes of a run come back soon
	p.IDontWantMessageThreshold = 1   // see passOn; an id is shorter than any message
	if profile == WAN {
		p.Dhi = connsHigh
	}
	return p
}

// detourScore is below PublishThreshold and above GraylistThreshold: nothing is said to such a
// peer, and what it says is heard.
const detourScore = -60

// detour is the score of a peer with which gossip would be a waste: it is reached through a relay
// alone, and gossip flows with the relay, which passes on all that either says. Else each
// message would pass the relay once more for each two that it connects.
func (h *Host) detour(p peer.ID) float64 {
	if h.cfg.Profile != WAN {
		return 0
	}
	relayed, direct := h.conns(p)
	if direct == nil && relayed != nil && h.regains.has(relayOf(relayed)) {
		return detourScore
	}
	return 0
}

// scoring is mild: only messages that fail Check and abuse of gossip's own
// control messages count. About ten bad messages in a minute make a peer
// unheard; it is forgiven within minutes. Addresses do not count, as the nodes
// of one machine or behind one router share one.
func (h *Host) scoring(topic string) (*pubsub.PeerScoreParams, *pubsub.PeerScoreThresholds) {
	decay := pubsub.ScoreParameterDecay(5 * time.Minute)
	params := &pubsub.PeerScoreParams{
		AppSpecificScore:          h.detour,
		AppSpecificWeight:         1,
		BehaviourPenaltyWeight:    -1,
		BehaviourPenaltyThreshold: 6,
		BehaviourPenaltyDecay:     decay,
		DecayInterval:             pubsub.DefaultDecayInterval,
		DecayToZero:               pubsub.DefaultDecayToZero,
		RetainScore:               10 * time.Minute,
		SeenMsgTTL:                seenFor,
		Topics: map[string]*pubsub.TopicScoreParams{topic: {
			SkipAtomicValidation:           true,
			TopicWeight:                    1,
			TimeInMeshQuantum:              time.Second,
			InvalidMessageDeliveriesWeight: -1,
			InvalidMessageDeliveriesDecay:  decay,
		}},
	}
	return params, &pubsub.PeerScoreThresholds{GossipThreshold: -20, PublishThreshold: -50, GraylistThreshold: -100}
}

// receive has what validate accepts, of others, in the inbox at once. It runs in gossip's workers, several at once.
func (h *Host) receive(ctx context.Context, from peer.ID, m *pubsub.Message) pubsub.ValidationResult {
	result := h.validate(ctx, from, m)
	if id, err := address.PeerID(string(from)); result == pubsub.ValidationAccept && err == nil && from != h.host.ID() {
		h.tracer.delivered.Add(1)
		h.inbox.put(Message{From: id, ID: wire.Sum(m.GetData()), Data: m.GetData()})
		m.ValidatorData = taken{}
	}
	if result == pubsub.ValidationIgnore {
		h.surplus.Add(from, time.Now())
	}
	return result
}

// taken marks a message of another node that is in place here.
type taken struct{}

// validate checks a message.
//
// A message that Check holds back counts as seen for seenFor: copies of it from others are dropped unchecked, and no
// IHAVE has it asked for, even if there would be room for it by then. That is meant. A copy comes within a second, from
// each neighbour, so to look at each would cost most where too much is said already. And nothing waits for it: the next
// heartbeat says more, and repair brings the headers, and the equivocation proofs with them.
func (h *Host) validate(_ context.Context, from peer.ID, m *pubsub.Message) pubsub.ValidationResult {
	id, err := address.PeerID(string(from))
	if err != nil {
		return pubsub.ValidationReject // cannot be: the handshake compared it
	}
	err = h.cfg.Check(id, m.GetData())
	if stranger := (*member.Stranger)(nil); errors.As(err, &stranger) {
		h.inbox.put(Stranger{From: id, Stranger: *stranger})
		return pubsub.ValidationIgnore
	}
	switch {
	case errors.Is(err, limit.ErrHeldBack):
		return pubsub.ValidationIgnore
	case err != nil:
		return pubsub.ValidationReject
	}
	return pubsub.ValidationAccept
}

// passOn holds a message back for a moment before gossip passes it on. Its author sends it to all that it is connected
// with. They tell their neighbours at once that they want it no more (IDONTWANT), and are sent no copy. Without the wait a
// node would get each message from each of its neighbours.
func (h *Host) passOn(ctx context.Context, _ peer.ID, m *pubsub.Message) pubsub.ValidationResult {
	if m.ValidatorData == nil {
		return pubsub.ValidationAccept // its own, or not accepted, which this does not change
	}
	wait := time.NewTimer(passOnAfter)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	return pubsub.ValidationAccept
}

// Publish spreads msg, which Config.Check must accept, to everyone in the run.
// It returns when the message is on its way to those connected now.
func (h *Host) Publish(msg []byte) error {
	if len(msg) > wire.MaxMessage {
		return fmt.Errorf("publish: %w: %d bytes, at most %d", wire.ErrSize, len(msg), wire.MaxMessage)
	}
	if err := h.cfg.Check(wire.PeerIDOf(h.cfg.Key), msg); err != nil {
		return fmt.Errorf("publish: own message: %w", err)
	}
	if err := h.topic.Publish(h.ctx, msg); err != nil {
		if h.ctx.Err() != nil {
			err = ErrClosed
		}
		return fmt.Errorf("publish: %w", err)
	}
	h.tracer.published.Add(1)
	return nil
}

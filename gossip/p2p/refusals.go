package p2p

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// Why a peer is refused, beside a *hello.Refusal.
var (
	// ErrHandshake: the peer sent something else than its signed record.
	ErrHandshake = errors.New("broken handshake")
	// ErrRefusedByPeer: the peer refuses us; its reason follows.
	ErrRefusedByPeer = errors.New("peer refuses us")
	// ErrNotAdmitted: the run is not open to the peer; the reason follows.
	ErrNotAdmitted = errors.New("not admitted")
	// ErrDropped: this node dropped the peer a while ago; its reason follows.
	ErrDropped = errors.New("dropped by this node")
)

// isRefusal tells a decision, which repeats, from a failure of the link.
func isRefusal(err error) bool {
	var r *hello.Refusal
	return errors.As(err, &r) || errors.Is(err, ErrHandshake) || errors.Is(err, ErrRefusedByPeer) || errors.Is(err, ErrDropped) || errors.Is(err, ErrNotAdmitted)
}

// refusals remembers for a while who was refused and why, so that nobody is
// dialled in a loop.
type refusals struct {
	mu   sync.Mutex
	byID map[peer.ID]refusal
}

type refusal struct {
	reason error
	until  time.Time
}

func newRefusals() *refusals { return &refusals{byID: map[peer.ID]refusal{}} }

// put remembers a refusal. A drop is not shortened by a refusal that it causes.
func (r *refusals) put(p peer.ID, reason error, memory time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	until := time.Now().Add(memory)
	if old, ok := r.byID[p]; ok && old.until.After(until) {
		return
	}
	if len(r.byID) >= maxRefusals {
		r.forgetOldest()
	}
	r.byID[p] = refusal{reason, until}
}

// get returns why p is refused at this time, nil if it is not.
func (r *refusals) get(p peer.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, ok := r.byID[p]
	if !ok {
		return nil
	}
	if !time.Now().Before(old.until) {
		delete(r.byID, p)
		return nil
	}
	return old.reason
}

// dropped is get for those that this node dropped: they are refused when they
// come back, others may have been corrected.
func (r *refusals) dropped(p peer.ID) error {
	if err := r.get(p); errors.Is(err, ErrDropped) {
		return err
	}
	return nil
}

func (r *refusals) clear(p peer.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, p)
}

func (r *refusals) forgetOldest() {
	var oldest peer.ID
	for p, old := range r.byID {
		if oldest == "" || old.until.Before(r.byID[oldest].until) {
			oldest = p
		}
	}
	delete(r.byID, oldest)
}

// Drop closes the connections to a peer and refuses it for a while, with the
// reason. It is for peers that broke the protocol.
func (h *Host) Drop(id wire.PeerID, reason string) {
	pid, err := libp2pID(id)
	if err != nil {
		return
	}
	h.refusals.put(pid, fmt.Errorf("%w: %s", ErrDropped, reason), droppedMemory)
	h.disconnect(pid)
}

package p2p

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Records is what a node keeps for the DHT: which peers said that they are in which run, and
// where. It is bounded and in memory. Several hosts of one process may share it, as those of a
// relay for several runs do.
type Records struct {
	mu   sync.Mutex
	runs map[string][]record // by key; of each the oldest first
}

// record is the claim of one peer.
type record struct {
	peer.AddrInfo
	until time.Time
}

// NewRecords is empty Records.
func NewRecords() *Records { return &Records{runs: map[string][]record{}} }

// AddProvider implements records.ProviderStore of the DHT.
func (r *Records) AddProvider(_ context.Context, key []byte, p peer.AddrInfo) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	p.Addrs = slices.Clone(p.Addrs[:min(len(p.Addrs), maxMemberAddrs)])
	list, known := r.runs[string(key)]
	if !known && len(r.runs) >= maxRuns {
		r.forgetOldest(now)
	}
	list = slices.DeleteFunc(list, func(old record) bool { return old.ID == p.ID || !now.Before(old.until) })
	if len(list) >= maxMembers {
		list = list[1:]
	}
	r.runs[string(key)] = append(list, record{p, now.Add(recordsFor)})
	return nil
}

// forgetOldest forgets runs of which nothing is believed any more, or else the one that was
// heard of longest ago.
func (r *Records) forgetOldest(now time.Time) {
	var oldest string
	var until time.Time
	for key, list := range r.runs {
		last := list[len(list)-1].until
		if !now.Before(last) {
			delete(r.runs, key)
		} else if oldest == "" || last.Before(until) {
			oldest, until = key, last
		}
	}
	if len(r.runs) >= maxRuns {
		delete(r.runs, oldest)
	}
}

// GetProviders implements records.ProviderStore: the newest first.
func (r *Records) GetProviders(_ context.Context, key []byte) (found []peer.AddrInfo, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, old := range slices.Backward(r.runs[string(key)]) {
		if time.Now().Before(old.until) {
			found = append(found, old.AddrInfo)
		}
	}
	return found, nil
}

// Close implements records.ProviderStore.
func (r *Records) Close() error { return nil }

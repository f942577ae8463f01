package node

import (
	"context"
	"errors"
	"testing"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/replica"
)

// A payload counts as handed over only if its last byte has left.
func TestHandedOver(t *testing.T) {
	r := replica.Reply{Bulk: true, Payload: wire.Digest{1}}
	for cause, want := range map[error]wire.Digest{
		p2p.ErrSent:              r.Payload,
		errors.New("asker left"): {},
		context.DeadlineExceeded: {},
		context.Canceled:         {},
	} {
		ctx, end := context.WithCancelCause(t.Context())
		end(cause)
		if got := handedOver(ctx, r); got != want {
			t.Errorf("after %v: %v handed over, want %v", cause, got, want)
		}
	}
}

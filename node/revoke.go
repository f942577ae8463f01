package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/status"
)

// ErrRevoked says that an owner of the run revoked this node. Nobody takes what it makes any more.
var ErrRevoked = errors.New("an owner of the run has revoked this node or its invite: ask the owner why; with another invite start again in a new folder")

// publishRevocation spreads what an owner of the run signed. The error is for one that no node takes.
func (n *node) publishRevocation(ctx context.Context, v status.Revocation) error {
	done := make(chan error, 1)
	n.post(func(now core.Time) {
		var err error
		for _, b := range v.Words {
			word, parsed := wire.ParseSignedHeader(b)
			if parsed == nil {
				parsed = n.machine.Publish(now, word, []byte(v.Reason))
			}
			err = errors.Join(err, parsed)
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// revoked ends what there is with those whom an owner of the run revoked: the sessions with them, or
// this node.
func (n *node) revoked(e core.Revoked) {
	for _, name := range e.Names {
		n.screen.Event("revoked", name.String(), "an owner of the run revoked it: what it made before stays, and nothing of it counts any more")
	}
	if e.Own {
		n.fail(fmt.Errorf("run %v: %w", n.run, ErrRevoked))
		return
	}
	n.host.Reconsider(func(id wire.PeerID) bool {
		return slices.Contains(e.Names, id) || !n.members.Member(id)
	})
}

// stillMember refuses to begin where an owner's statement against this node is known already.
func (n *node) stillMember() error {
	if n.members == nil || n.members.Member(n.self) {
		return nil
	}
	return fmt.Errorf("run %v: %w", n.run, ErrRevoked)
}

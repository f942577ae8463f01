package node

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/inspect"
	"atoll/node/status"
)

// ErrRevoked says that an owner of the run revoked this node. Nobody takes what it makes any more.
var ErrRevoked = errors.New("an owner of the run has revoked this node or its invite")

// publishRevocation spreads what an owner of the run signed. The error is for one that no node takes.
func (n *node) publishRevocation(ctx context.Context, v status.Revocation) error {
	done := make(chan error, 1)
	n.post(func(now core.Time) {
		var err error
		for _, b := range v.Words {
			word, failed := wire.ParseSignedHeader(b)
			if failed == nil {
				failed = n.machine.Publish(now, word, []byte(v.Reason))
			}
			if failed == nil {
				n.revoking.Store(hex.EncodeToString(word.Header.Certificate[:]), nil)
			}
			err = errors.Join(err, failed)
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

// memberRows are the members of the run. An invite has ended once this node has spread an owner's word for it: the round that takes the word
// closes later, and whoever revokes again meanwhile has to know.
func (n *node) memberRows() []status.Member {
	rows := inspect.MembersOf(n.members)
	for i := range rows {
		if _, spread := n.revoking.Load(rows[i].Invite); spread {
			rows[i].Ended = true
		}
	}
	return rows
}

// revoked ends what there is with those whom an owner of the run revoked: the sessions with them, or
// this node.
func (n *node) revoked(e core.Revoked) {
	n.explain(e.Words)
	if e.Own {
		n.screen.Alarm(status.Revoked, n.self.String(), n.whyRevoked().Error(), status.RevokedRemedy)
		n.fail(n.revokedError())
		return
	}
	for _, name := range e.Names {
		if len(n.members.Of(name)) == 0 && n.members.Came(name) == 0 {
			continue // it was before this machine came: peers would only repeat old news
		}
		w, _ := n.members.Word(name)
		n.screen.Event(status.Revoked, name.String(), w.Text()+"; what it made before stays, and nothing of it counts any more")
	}
	n.host.Reconsider(func(id wire.PeerID) bool {
		return slices.Contains(e.Names, id) || !n.members.Member(id)
	})
}

// explain finds the reasons of statements, each the payload of a delta: of those of one name at least one is on the disk.
func (n *node) explain(statements []wire.SignedHeader) {
	for _, s := range statements {
		reason, err := n.ledger.Payload(s.Header.ID(n.run))
		if w, known := n.members.Word(wire.PeerID(s.Header.Certificate)); err != nil || !known || w.Reason != "" {
			continue
		}
		w := member.Word{Statement: s, Reason: string(reason)}
		_, err = n.members.AddWords(w)
		n.check("keep the reason of a revocation", err)
		n.work.disk.Put(func() { n.check("store a revocation", n.ledger.PutRevocation(w)) })
	}
}

// revokedError says who revoked this node, from when on, why, and what to do.
func (n *node) revokedError() error {
	return fmt.Errorf("run %v: %w; %s", n.run, n.whyRevoked(), status.RevokedRemedy)
}

func (n *node) whyRevoked() error {
	word, known := n.members.OutBy(n.self)
	if !known {
		return ErrRevoked
	}
	return fmt.Errorf("%w, %s", ErrRevoked, word)
}

// stillMember refuses to begin where an owner's statement against this node is known already.
func (n *node) stillMember() error {
	if n.members == nil || n.members.Member(n.self) {
		return nil
	}
	return n.revokedError()
}

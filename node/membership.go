package node

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/p2p/messagegate"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/store"
)

// membership is what admits this node, and others at it, to a run that admits by invitation. It is
// zero in a run that is open to everybody.
type membership struct {
	members     *member.Table
	invite      *member.Pass // that this node's link carries
	certificate []byte
	id          wire.Digest // of the certificate
	knows       atomic.Bool // genesis, and so who the run's owners are
	remembers   atomic.Bool // who was admitted before this start

	gate *messagegate.Gate // what gossip must pass; nil until the node listens
}

// inviteFile, in a node's folder, is the invite that it came with and gives on.
const inviteFile = "invite"

// beAdmitted makes this node's certificate from the invite of its link, of an earlier start, or from
// the key of the run's owner. While genesis is not known the invite says who that is.
func (n *node) beAdmitted() error {
	known := n.genesis.Rules != 0
	if known && n.genesis.Admission() == genesis.Open {
		return nil
	}
	pass, err := n.findInvite()
	if err != nil || pass == nil && !known {
		return err // without an invite nothing says that the run asks for one: its nodes do
	}
	if pass == nil {
		return fmt.Errorf("run %v admits by invitation, and there is none: ask the run's owner for a link with an invite, or on the owner's machine name the key that atoll new wrote, with --owner FILE", n.run)
	}
	owners := []wire.PeerID{pass.Owner}
	if known {
		owners = n.genesis.Owners
	}
	return n.admitSelf(*pass, owners)
}

// findInvite is the invite of the link, of the folder, or one that the owner's key makes; nil if
// there is none of these. One for guests gives way to the others: no link makes a guest of a member.
func (n *node) findInvite() (*member.Pass, error) {
	link := n.cfg.Link.Invite
	if link != nil && !link.Invite.Guests {
		return link, nil
	}
	kept, err := n.keptInvite()
	switch {
	case err != nil, kept != nil && n.staysMember(*kept):
		return kept, err
	case n.cfg.Owner != nil:
		return n.ownInvite()
	case link != nil:
		return link, nil
	}
	return kept, nil
}

// staysMember reports whether the invite of the folder goes before a link for guests and before the owner's key: it is one for
// members, and has not expired. One that has expired is worth less than the owner's key, whose invites do not, and as much
// as a link for guests where nobody let this node in by it in time: who is let in gets the genesis. Where the node was let in,
// it says what to do if nobody remembers that.
func (n *node) staysMember(kept member.Pass) bool {
	switch {
	case kept.Invite.Guests || kept.Check(n.run) != nil:
		return false
	case !kept.Invite.Expired(time.Now().UnixMilli()):
		return true
	case n.cfg.Owner != nil || n.genesis.Rules == 0:
		return false
	}
	if n.cfg.Link.Invite != nil {
		n.log.Warn("the invite of this folder has expired, and the link is for guests: goes on as a member. If all nodes refuse it, take part as a guest: join with the same link and a new folder",
			"dir", n.cfg.Dir, "expired", time.UnixMilli(kept.Invite.ExpiresMs).UTC().Format(time.RFC3339))
	}
	return true
}

// keptInvite is the invite of the folder, nil if there is none.
func (n *node) keptInvite() (*member.Pass, error) {
	text, err := os.ReadFile(filepath.Join(n.cfg.Dir, inviteFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, store.Explain(fmt.Errorf("read the invite: %w", err), n.cfg.Dir)
	}
	pass, err := member.ParsePass(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: delete it, then start with the join link, or with --genesis where the owner's key is", filepath.Join(n.cfg.Dir, inviteFile))
	}
	return &pass, nil
}

// ownInvite is one without limits, that the owner's key makes.
func (n *node) ownInvite() (*member.Pass, error) {
	_, secret, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make an invite: %w", err)
	}
	pass := member.Issue(n.cfg.Owner, n.run, member.Invite{}, secret)
	return &pass, nil
}

// keepInvite keeps an invite for another start. Whoever reads it can join.
func (n *node) keepInvite(p member.Pass) error {
	f, err := os.CreateTemp(n.cfg.Dir, ".invite-*") // readable by its owner alone
	if err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	_, err = f.WriteString(p.String() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(n.cfg.Dir, inviteFile))
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return store.Explain(err, n.cfg.Dir)
}

func (n *node) admitSelf(pass member.Pass, owners []wire.PeerID) error {
	if err := pass.Check(n.run); err != nil {
		return err
	}
	c, err := pass.Admit(n.run, n.key)
	if err != nil {
		return err
	}
	n.members = member.NewTable(n.run, owners)
	known := n.genesis.Rules != 0
	n.knows.Store(known)
	if _, err := n.members.Add(c); err != nil {
		return fmt.Errorf("the invite does not fit the run: %w", err)
	}
	n.certificate, n.id = c.Encode(), c.ID(n.run)
	if pass.Secret != nil {
		n.invite = &pass
	}
	return n.keepInvite(pass)
}

// confirmAdmission holds the invite against the genesis that came from a peer.
func (n *node) confirmAdmission() error {
	g := n.genesis
	switch {
	case n.knows.Load() || g.Admission() == genesis.Open && n.members == nil:
		return nil
	case g.Admission() == genesis.Open:
		return fmt.Errorf("run %v is open to everybody, and the link has an invite: it is not of this run", n.run)
	case n.members == nil:
		return fmt.Errorf("run %v admits by invitation, and the link has none: ask the run's owner for one that has, which atoll invite prints", n.run)
	}
	if err := n.members.SetOwners(g.Owners); err != nil {
		return fmt.Errorf("the invite does not fit run %v: %w", n.run, err)
	}
	n.knows.Store(true)
	n.host.Reconsider(func(wire.PeerID) bool { return true }) // until now all were let in
	return nil
}

// admits judges a peer by its record. Until genesis is known nobody is refused: all that this node
// wants is the genesis, whose hash it knows. Until it has read whom it knew before, it refuses nobody
// whose invite has expired.
func (n *node) admits(r hello.Record) error {
	if !n.knows.Load() {
		return nil
	}
	now := int64(0)
	if n.remembers.Load() {
		now = time.Now().UnixMilli()
	}
	return n.members.Admit(r, now)
}

// checkMessage is Config.Check of the host.
func (n *node) checkMessage(from wire.PeerID, raw []byte) error {
	return n.gate.Check(n.clock.Now(), from, raw)
}

// sparesMessage is Config.Spares of the host.
func (n *node) sparesMessage(from wire.PeerID, raw []byte) error {
	return n.gate.Spares(n.clock.Now(), from, raw)
}

package node

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/p2p/address"
	"atoll/gossip/p2p/messagegate"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/joinlink"
	"atoll/node/store"
)

// membership is what admits this node, and others at it, to a run that admits by invitation. It is
// zero in a run that is open to everybody.
type membership struct {
	members     *member.Table
	revoking    sync.Map     // ids in hex of what an owner revoked by way of this process
	invite      *member.Pass // that this node's link carries, where the run's owner put one; nil elsewhere
	certificate []byte
	id          wire.Digest // of the certificate
	knows       atomic.Bool // genesis, and so who the run's owners are
	remembers   atomic.Bool // who was admitted before this start

	gate *messagegate.Gate // what gossip must pass; nil until the node listens
}

// Files in a node's folder: the certificate that admits it, and, where the run's owner put one, the invite that its link
// carries. Whoever reads an invite can join, so no other node keeps one.
const (
	certificateFile = "certificate"
	InviteFile      = "invite"
)

// What the invite of the first node's link is for where atoll new made none: so many nodes, for so long.
const (
	InviteUses  = 4
	InviteAfter = 30 * 24 * time.Hour
)

// beAdmitted takes this node's certificate from the invite of its link, from an earlier start, or from
// the key of the run's owner. While genesis is not known nothing tells whether an owner made the invite.
func (n *node) beAdmitted() error {
	known := n.genesis.Rules != 0
	if known && n.genesis.Admission() == genesis.Open {
		return nil
	}
	c, err := n.findCertificate()
	if err != nil || c == nil && !known {
		return err // without an invite nothing says that the run asks for one: its nodes do
	}
	if c == nil {
		return fmt.Errorf("run %v admits by invitation, and there is none: ask the run's owner for a link with an invite, or on the owner's machine name the key that atoll new wrote, with --owner FILE", n.run)
	}
	if err := n.admitSelf(*c); err != nil {
		return err
	}
	return n.findInvite()
}

// findCertificate is by the invite of the link, that of the folder, or by the owner's key, for this node alone; nil if
// there is none of these. One for guests gives way to the others: no link makes a guest of a member.
func (n *node) findCertificate() (*member.Certificate, error) {
	link := n.cfg.Link.Invite
	kept, err := keptCertificate(n.cfg.Dir, n.self)
	switch {
	case err != nil, kept != nil && kept.Invite.Alone && n.staysMember(*kept): // the first node's does not end with its link
		return kept, err
	case link != nil && !link.Invite.Guests:
		return n.certificateBy(*link)
	case kept != nil && n.staysMember(*kept):
		return kept, nil
	case n.cfg.Owner != nil:
		return n.certificateBy(member.Issue(n.cfg.Owner, n.run, member.Invite{Key: wire.PeerIDOf(n.key)}, nil))
	case link != nil:
		return n.certificateBy(*link)
	}
	return kept, nil
}

func (n *node) certificateBy(pass member.Pass) (*member.Certificate, error) {
	if n.genesis.Rules != 0 {
		if err := pass.Check(n.run, n.genesis.Owners); err != nil {
			return nil, err
		}
	}
	c, err := pass.Admit(n.run, n.key)
	return &c, err
}

// staysMember reports whether the certificate of the folder goes before a link for guests and before the owner's key: it is a
// member's, and its invite has not expired. One whose invite has expired is worth less than the owner's key, whose invites do not, and as much
// as a link for guests where nobody let this node in by it in time: who is let in gets the genesis. Where the node was let in,
// it says what to do if nobody remembers that.
func (n *node) staysMember(kept member.Certificate) bool {
	switch {
	case kept.Invite.Guests || kept.Verify(n.run, n.genesis.Owners) != nil:
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

// ErrDamaged says that what admits a node cannot be read: a person has to help, however often it starts.
var ErrDamaged = errors.New("is damaged")

// keptCertificate is the certificate of a folder, which has to be of the node there; nil if there is none.
func keptCertificate(dir string, self wire.PeerID) (*member.Certificate, error) {
	text, err := keptText(dir, certificateFile)
	if text == "" || err != nil {
		return nil, err
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		var c member.Certificate
		if c, err = member.Parse(b); err == nil && c.Author == self {
			return &c, nil
		}
	}
	return nil, fmt.Errorf("%s %w: delete it, then start with the join link, or with --genesis where the owner's key is", filepath.Join(dir, certificateFile), ErrDamaged)
}

// keptText is what a small file of a folder says, "" if there is none.
func keptText(dir, name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), store.Explain(err, dir)
}

// findInvite is the invite that the link of this node carries: what the owner put here, or a new one where the owner's key is.
func (n *node) findInvite() error {
	text, err := keptText(n.cfg.Dir, InviteFile)
	switch {
	case err != nil:
		return err
	case text != "":
		pass, err := member.ParsePass(text)
		if err != nil || n.genesis.Rules != 0 && pass.Check(n.run, n.genesis.Owners) != nil {
			return fmt.Errorf("%s %w, or of another run: delete it, and where the owner's key is the next start makes a new one", filepath.Join(n.cfg.Dir, InviteFile), ErrDamaged)
		}
		n.invite = &pass
	case n.cfg.Invite != nil:
		if n.invite = n.cfg.Invite; n.invite.Check(n.run, n.genesis.Owners) != nil {
			return fmt.Errorf("the invite beside the genesis is of another run: delete it, and where the owner's key is the next start makes a new one")
		}
	case n.cfg.Owner != nil:
		pass, err := NewInvite(n.cfg.Owner, n.run, InviteUses, InviteAfter)
		if err != nil {
			return err
		}
		n.invite = &pass
	default:
		return nil
	}
	return n.keep(InviteFile, n.invite.String())
}

// NewInvite is one for so many nodes that come within a time; 0 is no limit.
func NewInvite(owner ed25519.PrivateKey, run wire.RunID, uses uint32, after time.Duration) (member.Pass, error) {
	v := member.Invite{Uses: uses}
	if after > 0 {
		v.ExpiresMs = time.Now().Add(after).UnixMilli()
	}
	return member.New(owner, run, v)
}

// linkInvite is the invite for a link at this moment: nil where there is none, it has expired, or its owner revoked it.
func (n *node) linkInvite() *member.Pass {
	v := n.invite
	if v == nil || v.Invite.Expired(time.Now().UnixMilli()) || n.members.Revoked(member.Certificate{Invite: v.Invite}) != nil {
		return nil
	}
	return v
}

// letsIn says whom a link of this node lets in, or what it lacks; "" in a run that is open.
func (n *node) letsIn(link joinlink.Link) string {
	switch {
	case n.members == nil:
		return ""
	case n.invite == nil:
		return "it has no invite: it leads in together with a link of the run's owner, old or new, as `atoll join OWNERS_LINK THIS_LINK`"
	case link.Invite == nil && n.invite.Invite.Expired(time.Now().UnixMilli()):
		return "its invite has expired: `atoll invite` makes a link that lets others in"
	case link.Invite == nil:
		return "its invite is revoked: `atoll invite` makes a link that lets others in"
	}
	text := "it is " + link.LetsIn()
	if v := link.Invite.Invite; v.Uses > 0 {
		came := n.members.Came(v.Key)
		if came >= int(v.Uses) {
			return fmt.Sprintf("as many machines came by its invite as that is for, %d: `atoll invite` makes a link that lets others in", came)
		}
		text += fmt.Sprintf("; %d came", came)
	}
	if n.cfg.Profile == p2p.WAN && !slices.ContainsFunc(link.Peers, address.FromAnywhere) {
		text += "; so far only machines of this network reach the addresses in it: for others run `atoll relay LINK` on a machine that they reach, where LINK is what `atoll invite --uses 1` prints here"
	}
	return text
}

// keep has a small file of the folder say something at the next start too. It is readable by its owner alone.
func (n *node) keep(name, text string) error {
	if kept, err := keptText(n.cfg.Dir, name); err != nil || kept == text {
		return err
	}
	return store.Explain(n.cfg.disk.SaveAdmission(n.cfg.Dir, name, []byte(text+"\n")), n.cfg.Dir)
}

func (n *node) admitSelf(c member.Certificate) error {
	n.members = member.NewTable(n.run, n.genesis.Owners)
	n.knows.Store(n.genesis.Rules != 0)
	if _, err := n.members.Add(c); err != nil {
		return fmt.Errorf("the invite does not fit the run: %w", err)
	}
	n.certificate, n.id = c.Encode(), c.ID(n.run)
	return n.keep(certificateFile, base64.RawURLEncoding.EncodeToString(n.certificate))
}

// confirmAdmission holds the invite against the genesis that came from a peer, whom this node then leaves: see enter.
func (n *node) confirmAdmission() error {
	g := n.genesis
	switch {
	case n.knows.Load() || !n.told && g.Admission() == genesis.Open && n.members == nil:
		return nil
	case g.Admission() == genesis.Open && n.members == nil:
		n.host.Reconsider(everybody)
		return nil
	case g.Admission() == genesis.Open:
		return fmt.Errorf("run %v is open to everybody, and the link has an invite: it is not of this run", n.run)
	case n.members == nil:
		return fmt.Errorf("run %v admits by invitation, and the link has none: ask the run's owner for one that has, which atoll invite prints; an old one and this one lead in together", n.run)
	}
	if n.members.SetOwners(g.Owners); len(n.members.Of(n.self)) == 0 {
		return fmt.Errorf("the invite of the link is not of run %v: ask the run's owner for a new link, which `atoll invite` prints", n.run)
	}
	n.knows.Store(true)
	n.host.Reconsider(everybody) // until now all were let in
	return nil
}

// everybody is all peers.
func everybody(wire.PeerID) bool { return true }

// enter has others take this node for one of the run. A newcomer only looked until here, with what an invite is worth: what keeps it from taking part,
// as another text than the run's, took no use of its link, and left nothing in its folder that a start goes by.
func (n *node) enter() error {
	if n.entered {
		return nil
	}
	if err := n.cfg.disk.SaveGenesis(n.cfg.Dir, n.genesis.Encode()); err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	n.entered = true
	if !n.record.get().Visits {
		return nil
	}
	err := n.record.change(func(r *hello.Record) { r.Visits = false })
	n.host.Renew()
	return err
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

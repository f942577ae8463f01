package main

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/node/joinlink"
	"atoll/node/status"
	"atoll/optimizer/outer"
)

const revokeHelp = `
Revokes the admission of one node, or an invite and with it the admission of every node that joined by it. It works in runs that admit by invitation. The command needs the owner's key, which atoll new wrote, and the folder of a running node, which tells the others.

    atoll peers first                               who there is, and by which invite
    atoll revoke 8a88e3dd74 first
    atoll revoke "lab 8a" first --reason "its text was not ours"
    atoll revoke LINK first                         the invite in a link, even if nobody has used it yet

From the round that is open now, deltas of the revoked node no longer count; those before stay in the model. The other nodes disconnect from it, and it ends when it hears of the revocation. A node that was revoked by its id can come back only with another invite and a new folder, which has a new key; one whose invite was revoked, with another invite. A revocation is final.`

// RevokeCmd is `atoll revoke`.
type RevokeCmd struct {
	Name string `arg:"" help:"A node, by its name or the first digits of its id, or an invite, by the first digits of its id or its link: atoll peers lists both." placeholder:"NAME"`
	dirArg
	Owner   string        `help:"File of the owner's key. Default: owner in the folder or in one beside it, if that is the key of the run's owner." placeholder:"FILE"`
	Reason  string        `help:"Why, for all members to read. At most 256 bytes." default:"revoked by the owner"`
	Timeout time.Duration `help:"How long to wait for the node." default:"30s"`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*RevokeCmd) Help() string { return revokeHelp }

// revokedAnswer is the answer of `atoll revoke`.
type revokedAnswer struct {
	Name    string   `json:"name"`            // id of the node or the invite
	Label   string   `json:"label,omitempty"` // what the node is called
	Members []string `json:"members"`         // those who count no more
	From    []uint32 `json:"from"`            // the first round of each fragment without them
}

// Run signs the revocation and has the node of the folder spread it.
func (c *RevokeCmd) Run(ctx context.Context, out *cli.Console) error {
	if len(c.Reason) == 0 || len(c.Reason) > outer.MaxReason {
		return cli.BadUsage("--reason has %d bytes: use 1 to %d", len(c.Reason), outer.MaxReason)
	}
	if err := checkTimeout(c.Timeout); err != nil {
		return err
	}
	dir, err := c.folder(out)
	if err != nil {
		return err
	}
	g, err := inspect.FolderGenesis(dir)
	if err != nil {
		return err
	}
	if g.Admission() == genesis.Open {
		return fmt.Errorf("run %v is open: nobody can revoke there", g.RunID())
	}
	if joinlink.Is(c.Name) { // before the node is asked
		if _, err := c.linked(g); err != nil {
			return err
		}
	}
	owner, err := ownerKey(c.Owner, dir, g)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	answer, err := c.revoke(ctx, dir, g, owner)
	if err != nil {
		return err
	}
	if c.JSON {
		return out.JSON(answer)
	}
	who := status.Peer{ID: answer.Name, Label: answer.Label}
	out.Answer("revoked %s: %s no more from round %d on; what was made before stays", who.NameAndID(), countText(len(answer.Members)), slices.Min(answer.From))
	return nil
}

// countText says how many nodes count.
func countText(members int) string {
	if members == 0 {
		return "nobody joined by it, and whoever would counts"
	}
	if members == 1 {
		return "1 node counts"
	}
	return fmt.Sprintf("%d nodes count", members)
}

func (c *RevokeCmd) revoke(ctx context.Context, dir string, g genesis.Genesis, owner ed25519.PrivateKey) (a revokedAnswer, err error) {
	client, err := status.Dial(dir)
	if errors.Is(err, status.ErrNotRunning) {
		return a, fmt.Errorf("%w: start it with `atoll join %s`, so that it tells the others", err, dir)
	} else if err != nil {
		return a, err
	}
	s, err := client.Snapshot(ctx)
	if err != nil {
		return a, err
	}
	if s.State == wire.Joining.String() {
		return a, fmt.Errorf("the node on %s is still joining: its rounds are not yet those of the run; wait until it trains, or ask by the folder of another node", dir)
	}
	members, err := client.Members(ctx)
	if err != nil {
		return a, err
	}
	name, err := c.name(s.Peers, members, g)
	if err != nil {
		return a, err
	}
	a.Name = hex.EncodeToString(name[:])
	a.Label = status.LabelsOf(s.Peers)[status.ShortID(a.Name)]
	for _, m := range members {
		if m.ID == a.Name || m.Invite == a.Name {
			a.Members = append(a.Members, m.ID)
		}
	}
	if slices.Contains(a.Members, s.Self) {
		return a, fmt.Errorf("%s would revoke the node on %s itself, which is to tell the others: revoke by the folder of another node, or the other members one by one", c.Name, dir)
	}
	v := status.Revocation{Reason: c.Reason}
	for f, fragment := range s.Fragments {
		h := wire.NewRevocation(f, fragment.Closed+1, wire.Digest(name), []byte(c.Reason))
		v.Words = append(v.Words, wire.SignHeader(owner, g.RunID(), h).Append(nil))
		a.From = append(a.From, h.Round)
	}
	return a, client.Revoke(ctx, v)
}

// name is what is to be revoked: the invite of a link, whether anybody came by it or not, or what some digits name.
func (c *RevokeCmd) name(peers []status.Peer, members []status.Member, g genesis.Genesis) (name wire.PeerID, err error) {
	if !joinlink.Is(c.Name) {
		return nameOf(peers, members, c.Name)
	}
	return c.linked(g)
}

// linked is the invite of a link.
func (c *RevokeCmd) linked(g genesis.Genesis) (name wire.PeerID, err error) {
	link, err := joinlink.Parse(c.Name)
	switch {
	case err != nil:
		return name, badLink(err)
	case link.Run != g.RunID():
		return name, cli.BadUsage("the link is of run %v, and this is run %v", link.Run, g.RunID())
	case link.Invite == nil:
		return name, cli.BadUsage("the link has no invite: there is nothing to revoke")
	}
	if v := link.Invite.Invite; v.Alone {
		return name, cli.BadUsage("the link is for node %v alone, so whoever revokes it revokes that node, also where it came by another link: if you mean that, pass the node's id", v.Key)
	}
	return link.Invite.Invite.Key, nil
}

// nameOf is the member that is called so, or the member or the invite whose id begins so.
func nameOf(peers []status.Peer, members []status.Member, word string) (name wire.PeerID, err error) {
	var all []status.Peer
	for _, m := range members {
		i := slices.IndexFunc(peers, func(p status.Peer) bool { return p.ID == m.ID })
		if i >= 0 {
			all = append(all, peers[i])
		}
		all = append(all, status.Peer{ID: m.ID}, status.Peer{ID: m.Invite})
	}
	id, err := status.One(all, word)
	switch {
	case err == nil:
		err = name.UnmarshalText([]byte(id))
	case errors.Is(err, status.ErrNobody):
		err = fmt.Errorf("no member is called %s, and no id of a member or of an invite in use begins so: `atoll peers` lists them; pass the link of an invite that nobody has used", word)
	}
	return name, err
}

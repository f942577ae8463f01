package main

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
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
Revokes the admission of one node, or an invite. It works in runs that admit by invitation. The command needs the owner's key, which atoll new wrote, and the folder of a running node, which tells the others.

    atoll peers first                               who there is, and by which invite
    atoll revoke 8a88e3dd74 first
    atoll revoke "lab 8a" first --reason "its text was not ours"
    atoll revoke LINK first --spare anna,bert        a link got into wrong hands: these two stay, all others that came by it are out
    atoll revoke LINK first --spare all              nobody new comes in by it
    atoll revoke 3f2a9c0b11 first                   an invite by which somebody came, by its id in atoll peers

An invite that is revoked lets nobody in any more. If machines came by it, --spare says which of them stay: they need no new link, and notice nothing. Without --spare the command lists who came, and does nothing. The node of this folder always stays.

From the round that is open now, deltas of a revoked node no longer count; those before stay in the model. The other nodes disconnect from it, and it ends when it hears of the revocation. A node that was revoked by its id can come back only with another invite and a new folder, which has a new key; one whose invite was revoked, with another invite. A revocation is final. To part later with one who stayed, revoke the invite again, or the node.`

// RevokeCmd is `atoll revoke`.
type RevokeCmd struct {
	Name string `arg:"" help:"A node, by its name or the first digits of its id, or an invite, by the first digits of its id or its link: atoll peers lists both." placeholder:"NAME"`
	dirArg
	Owner   string        `help:"File of the owner's key. Default: owner in the folder or in one beside it, if that is the key of the run's owner." placeholder:"FILE"`
	Spare   []string      `help:"Who stays of those that came by the invite: names or first digits of ids, all, or none." placeholder:"NAMES"`
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
	Kept    []string `json:"kept,omitempty"`  // those who came by the invite and stay
	From    []uint32 `json:"from"`            // the first round of each fragment without them
	Again   bool     `json:"again,omitempty"` // the invite was revoked before
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
	stay := ""
	if len(answer.Kept) > 0 {
		stay = fmt.Sprintf(", %s", cli.Plural(len(answer.Kept), "stays", "stay"))
	}
	out.Answer("revoked %s: %s no more from round %d on%s; what was made before stays", who.NameAndID(), answer.countText(), slices.Min(answer.From), stay)
	return nil
}

// countText says how many nodes count.
func (a revokedAnswer) countText() string {
	switch n := len(a.Members); {
	case n == 0 && a.Again:
		return "it was revoked before, and whoever was out then counts"
	case n == 0 && len(a.Kept) > 0:
		return "whoever would join by it counts"
	case n == 0:
		return "nobody joined by it, and whoever would counts"
	case n == 1:
		return "1 node counts"
	default:
		return fmt.Sprintf("%d nodes count", n)
	}
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
	if err := c.choose(&a, s, members); err != nil {
		return a, err
	}
	if n := len(a.headers(0, 1, nil)); n > outer.MaxRevoked {
		return a, cli.BadUsage("nothing is revoked: this would sign %d names, and a run keeps %d: revoke fewer at a time", n, outer.MaxRevoked)
	}
	for f, fragment := range s.Fragments { // each by itself: all its words are to be in one round
		v := status.Revocation{Reason: c.Reason}
		for _, h := range a.headers(f, fragment.Closed+1, []byte(c.Reason)) {
			v.Words = append(v.Words, wire.SignHeader(owner, g.RunID(), h).Append(nil))
		}
		a.From = append(a.From, fragment.Closed+1)
		err = errors.Join(err, client.Revoke(ctx, v))
	}
	return a, err
}

// choose sorts those whom the name admits into who counts no more and who stays.
func (c *RevokeCmd) choose(a *revokedAnswer, s status.Snapshot, members []status.Member) error {
	var came []status.Peer
	for _, m := range members {
		a.Again = a.Again || m.Invite == a.Name && m.ID != a.Name && m.Ended
		switch {
		case m.ID == a.Name && m.ID == s.Self:
			return fmt.Errorf("%s would revoke the node of this folder itself, which is to tell the others: revoke by the folder of another node", c.Name)
		case m.ID == a.Name && m.Revoked:
			return fmt.Errorf("%s is revoked already", c.Name)
		case m.ID == a.Name && len(c.Spare) > 0:
			return cli.BadUsage("%s is one node: --spare is for an invite, and says who stays of those that came by it", c.Name)
		case m.ID == a.Name:
			a.Members = []string{m.ID}
			return nil
		case m.Invite != a.Name || m.Revoked || slices.ContainsFunc(members, func(o status.Member) bool { return o.ID == m.ID && o.Invite != a.Name && !o.Revoked }):
			// another invite lets it in
		case m.ID == s.Self:
			a.Kept = append(a.Kept, m.ID)
		default:
			came = append(came, peerWith(s.Peers, m.ID))
		}
	}
	stay, err := c.staying(came)
	for _, p := range came {
		if stay[p.ID] {
			a.Kept = append(a.Kept, p.ID)
		} else {
			a.Members = append(a.Members, p.ID)
		}
	}
	return err
}

func peerWith(peers []status.Peer, id string) status.Peer {
	if i := slices.IndexFunc(peers, func(p status.Peer) bool { return p.ID == id }); i >= 0 {
		return peers[i]
	}
	return status.Peer{ID: id}
}

// Words of --spare that are no names.
const (
	spareAll  = "all"
	spareNone = "none"
)

// staying are the ids of those that --spare names. Without it nobody knows who is a friend: the error lists who came.
func (c *RevokeCmd) staying(came []status.Peer) (stay map[string]bool, err error) {
	stay = map[string]bool{}
	if len(c.Spare) == 0 && len(came) > 0 {
		var names, listed []string
		for _, p := range came {
			names = append(names, status.ShellWord(p.Called()))
			listed = append(listed, fmt.Sprintf("%s (%s tokens)", p.NameAndID(), status.Count(float64(p.Tokens))))
		}
		return nil, cli.BadUsage("nothing is revoked yet: by this invite came %s. Say who of them stays: --spare %s without those that are to go, --spare all, or --spare none", strings.Join(listed, ", "), strings.Join(names, ","))
	}
	for _, word := range c.Spare {
		id, err := status.One(came, word)
		switch {
		case word == spareNone && len(c.Spare) == 1:
		case word == spareAll && len(c.Spare) == 1:
			for _, p := range came {
				stay[p.ID] = true
			}
		case errors.Is(err, status.ErrNobody):
			return nil, cli.BadUsage("nothing is revoked: --spare %q names nobody that came by this invite, which were: %s", word, status.Choices(came))
		case err != nil:
			return nil, cli.BadUsage("nothing is revoked: --spare %v", err)
		default:
			stay[id] = true
		}
	}
	return stay, nil
}

// mostNamed bounds those who are revoked by their keys beside their invite when it is revoked first: that is for those who are away now, as a peer can then
// prove it to them, and one who signed thousands of keys must not fill the run's table of names.
const mostNamed = 16

// headers are what the owner signs for a fragment. Where the invite was revoked before, whoever stayed then goes by a word of its own
// alone, and the end is signed again for a fragment that has it not.
func (a revokedAnswer) headers(fragment int, round uint32, reason []byte) (all []wire.Header) {
	if slices.Equal(a.Members, []string{a.Name}) || len(a.Kept) == 0 && !a.Again {
		return []wire.Header{wire.NewRevocation(fragment, round, wire.Digest(idOf(a.Name)), reason)}
	}
	named := a.Members
	if !a.Again {
		named = named[:min(len(named), mostNamed)]
	}
	for _, id := range named {
		all = append(all, wire.NewRevocation(fragment, round, wire.Digest(idOf(id)), reason))
	}
	var kept []wire.PeerID
	for _, id := range a.Kept {
		kept = append(kept, idOf(id))
	}
	return append(all, wire.NewEnd(fragment, round, idOf(a.Name), kept, reason)...)
}

// idOf reads an id of a node's answer.
func idOf(text string) (id wire.PeerID) {
	_ = id.UnmarshalText([]byte(text)) // a node writes them
	return id
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
		return name, cli.BadUsage("%v", err)
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
	if errors.Is(err, status.ErrNobody) {
		err = fmt.Errorf("no member is called %s, and no id of a member or of an invite in use begins so: `atoll peers` lists them; pass the link of an invite that nobody has used", word)
	}
	return idOf(id), err
}

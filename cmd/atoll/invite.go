package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/node/joinlink"
	"atoll/node/limits"
	"atoll/node/status"
)

const inviteHelp = `
Prints a join link with an invite, for a run that admits by invitation. It takes the owner's key, which atoll new wrote, and a node's folder, for the addresses in the link. If no node has run yet, after atoll new, the link has no address: it is for a relay that starts before the first node, and for nodes on the first node's network. Whoever has the link joins as a member, and a member can harm the run: send it as you would a password.

    atoll invite first --expires 7d
    atoll invite first --uses 5
    atoll invite first --for 8a88e3dd74           for one node alone, as atoll peers names it
    atoll invite first --guests                   for strangers: you may publish this link
    atoll relay "$(atoll invite mine --uses 1)"      a relay by an invite of its own stays when that of a shared link ends

With --guests nodes join as guests: they train, all together count a little beside the members, and decide nothing. The run goes on only while a member is there. They get the model and the run's corpus, and see the nodes' addresses. A link with --for makes a good guest a member.

All nodes enforce the limits. After --expires, or once as many machines as --uses came, no new one joins, and those that joined before stay and come back. A machine that is gone, was revoked or got a new folder has had its use. Two sides of a network that is cut may each let in as many; together they count for no more. Who is inside with the link can bring others in: share it as a password. Whoever has the link gets the model, and the run's corpus if that is in shards, from any node that it lets in. atoll revoke ends an invite; its --spare says who stays of those that joined by it. The link that the first node prints carries an invite of its own, with the limits of atoll new --uses and --expires; atoll revoke ends that one too, and the first node stays. Nodes that joined print no invite: who has an old link and the address of a member that is there joins with both, atoll join OLD NEW.`

// InviteCmd is `atoll invite`.
type InviteCmd struct {
	dirArg
	Owner   string       `help:"File of the owner's key. Default: owner in the folder or in one beside it, if that is the key of the run's owner." placeholder:"FILE"`
	For     string       `help:"Id of the only node that may use the link: the 64 digits that atoll key prints, or the name or first digits of a node that atoll peers lists. Default: anybody who has the link." placeholder:"ID"`
	Guests  bool         `help:"Admit guests: their work counts a little, and they decide nothing. You may publish such a link."`
	Uses    uint32       `help:"Number of machines that the invite lets in. Default: any number." placeholder:"N"`
	QR      bool         `name:"qr" help:"Draw the link as a QR code too, which a phone or another machine reads from the terminal."`
	Expires *limits.Span `help:"How long new nodes may join with the link, such as 12h or 7d. Default: as long as the run lasts." placeholder:"TIME"`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*InviteCmd) Help() string { return inviteHelp }

// invited is the answer of `atoll invite`.
type invited struct {
	Link   string `json:"link"`
	Invite string `json:"invite"` // its public half, by which atoll peers names it
	Guests bool   `json:"guests"` // it admits guests
}

// Run makes an invite and prints the link.
func (c *InviteCmd) Run(ctx context.Context, out *cli.Console) error {
	if c.JSON && c.QR {
		return cli.BadUsage("--qr draws for people, and --json prints for programs: leave one of the two out")
	}
	if c.Guests && c.For != "" {
		return cli.BadUsage("--for makes one node a member, and --guests admits guests: leave one of the two out")
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
		return fmt.Errorf("run %v is open: whoever has its link joins, without an invite", g.RunID())
	}
	owner, err := ownerKey(c.Owner, dir, g)
	if err != nil {
		return err
	}
	link, peers := joinlink.Link{Run: g.RunID()}, []status.Peer(nil)
	if isFile(dir, keyName) {
		s, running, err := snapshot(ctx, dir)
		if err != nil {
			return err
		}
		if !running {
			sayStopped(out, dir, s)
		}
		if link, err = joinlink.Parse(s.Link); err != nil {
			return fmt.Errorf("the link of the node on %s: %w", dir, err)
		}
		if s.Finished {
			out.Say("note: %s", overText(dir))
		}
		peers = s.Peers
	}
	pass, err := c.pass(owner, g.RunID(), peers)
	if err != nil {
		return err
	}
	link.Invite = &pass
	if c.JSON {
		return out.JSON(invited{link.String(), fmt.Sprintf("%x", pass.Invite.Key[:]), pass.Invite.Guests})
	}
	out.Answer("%s", link)
	if c.QR {
		drawn, err := cli.QR(link.String())
		if err != nil {
			return err
		}
		out.Say("%s", drawn)
	}
	out.Say("(invite %s: %s; `atoll revoke LINK` ends it)", status.ShortID(fmt.Sprintf("%x", pass.Invite.Key[:])), c.limitsText(link))
	return nil
}

// limitsText says whom the link lets in, and how to have it let in fewer.
func (c *InviteCmd) limitsText(link joinlink.Link) string {
	text := "it is " + link.LetsIn()
	if c.For == "" && (c.Uses == 0 || c.Expires == nil) {
		text += "; --uses and --expires bound that"
	}
	return text
}

func (c *InviteCmd) pass(owner ed25519.PrivateKey, run wire.RunID, peers []status.Peer) (member.Pass, error) {
	v := member.Invite{Guests: c.Guests, Uses: c.Uses}
	if c.Expires != nil {
		v.ExpiresMs = time.Now().Add(time.Duration(*c.Expires)).UnixMilli()
	}
	if c.For != "" {
		key, err := invitee(peers, c.For)
		if err != nil {
			return member.Pass{}, err
		}
		v.Key = key
		return member.Issue(owner, run, v, nil), nil
	}
	return member.New(owner, run, v)
}

// invitee is the node with an id, or the peer that is called so or whose id begins so.
func invitee(peers []status.Peer, word string) (key wire.PeerID, err error) {
	if key.UnmarshalText([]byte(word)) == nil {
		return key, nil
	}
	id, err := status.One(peers, word)
	switch {
	case errors.Is(err, status.ErrNobody):
		return key, cli.BadUsage("--for %q is no node that the node here knows: pass the 64 digits that `atoll key` prints there as id", word)
	case err != nil:
		return key, cli.BadUsage("--for %v", err)
	}
	return idOf(id), nil
}

// ownerKey is the key in a file, or in the only file of one of the run's owners at hand.
func ownerKey(file, dir string, g genesis.Genesis) (ed25519.PrivateKey, error) {
	if file != "" {
		return readOwner(file, g)
	}
	var wrong error
	beside := filepath.Join(dir, "..")
	for _, place := range []string{dir, beside, filepath.Join(beside, "*")} {
		files, err := filepath.Glob(filepath.Join(place, ownerName))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			key, err := readOwner(path, g)
			if err == nil {
				return key, nil
			}
			wrong = errors.Join(wrong, err)
		}
	}
	return nil, errors.Join(fmt.Errorf("there is no key of an owner of run %v here: pass the file that atoll new wrote, with --owner FILE", g.RunID()), wrong)
}

// overText says what a link of a run that is over is still good for.
func overText(dir string) string {
	return fmt.Sprintf("this run is over: who joins trains nothing, and can fetch the model from a node that stays, such as `atoll join %s --stay`", status.ShellWord(dir))
}

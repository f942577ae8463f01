package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"atoll/node/inspect"
	"atoll/node/status"
)

const membersHelp = `
Lists the nodes that were admitted to a run which admits by invitation, as one node knows them, with the invite of each and its limits. A node whose invite is for it alone has its own id there. A guest came by an invite for guests alone: its work counts a little, its word does not, and atoll invite --for makes it a member. --json has ids in full. atoll peers shows who of them is here, and what they contribute. atoll revoke takes the word back that admitted one.

    atoll members --dir first`

// MembersCmd is `atoll members`.
type MembersCmd struct {
	dirFlag
	JSON bool `name:"json" help:"Answer with a JSON array."`
}

// Help implements kong.HelpProvider.
func (*MembersCmd) Help() string { return membersHelp }

// Run lists the members.
func (c *MembersCmd) Run(ctx context.Context, out *console) error {
	dir, err := c.folder()
	if err != nil {
		return err
	}
	members, err := inspect.Members(ctx, dir)
	if err != nil {
		return err
	}
	if c.JSON {
		return out.json(members)
	}
	if len(members) == 0 {
		out.say("this run is open to everybody: it has no members, see atoll peers")
		return nil
	}
	rows := [][]string{{"MEMBER", "INVITE", "USES", "EXPIRES", ""}}
	for _, m := range members {
		rows = append(rows, []string{shortID(m.ID), inviteText(m), limitText(m.Uses), expiryText(m.ExpiresMs), standing(m)})
	}
	return table(out.out, rows...)
}

func inviteText(m status.Member) string {
	if m.Invite == m.ID {
		return "for it alone"
	}
	return shortID(m.Invite)
}

// standing is what sets a node apart from a member.
func standing(m status.Member) string {
	var parts []string
	if m.Guest {
		parts = append(parts, "guest")
	}
	if m.Revoked {
		parts = append(parts, "revoked")
	}
	return strings.Join(parts, ", ")
}

// limitText is a limit. 0 sets none.
func limitText(n uint32) string {
	if n == 0 {
		return unknown
	}
	return fmt.Sprint(n)
}

func expiryText(ms int64) string {
	if ms == 0 {
		return unknown
	}
	return time.UnixMilli(ms).Format("2006-01-02 15:04")
}

package inspect

import (
	"context"
	"encoding/hex"
	"errors"

	"atoll/gossip/member"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/store"
)

// Members are the nodes that were admitted to the run of a folder, as far as its node knows. It asks
// the node if one runs there.
func Members(ctx context.Context, dir string) ([]status.Member, error) {
	client, err := status.Dial(dir)
	if err == nil {
		var members []status.Member
		if members, err = client.Members(ctx); err == nil {
			return members, nil
		}
	}
	if !errors.Is(err, status.ErrNotRunning) {
		return nil, err
	}
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	return MembersOf(f.members), f.close()
}

// membersIn are the certificates that a node kept, nil in a run that is open to everybody.
func membersIn(s *store.Store, g genesis.Genesis) (*member.Table, error) {
	if g.Admission() == genesis.Open {
		return nil, nil
	}
	kept, err := s.Members()
	if err != nil {
		return nil, err
	}
	table := member.NewTable(s.Run(), g.Owners)
	for _, b := range kept {
		if c, err := member.Parse(b); err == nil {
			_, _ = table.AddHeld(c) // one that does not fit is nobody's
		}
	}
	for _, word := range RevocationsIn(kept) {
		_, _ = table.AddWords(word)
	}
	return table, nil
}

// RevocationsIn are the owners' words among what is kept of members. They have another length than
// certificates.
func RevocationsIn(kept [][]byte) (words []member.Word) {
	for _, b := range kept {
		if word, err := member.ParseKept(b); err == nil {
			words = append(words, word)
		}
	}
	return words
}

// MembersOf are the members of a run as people see them.
func MembersOf(table *member.Table) []status.Member {
	members := []status.Member{}
	for _, c := range table.All() {
		v := c.Invite
		members = append(members, status.Member{
			ID: hex.EncodeToString(c.Author[:]), Invite: hex.EncodeToString(v.Key[:]),
			Guest: table.Guest(c.Author), Uses: v.Uses, ExpiresMs: v.ExpiresMs, Revoked: table.Revoked(c) != nil, Ended: table.Knows(v.Key),
		})
	}
	return members
}

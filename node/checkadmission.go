package node

import (
	"fmt"
	"path/filepath"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/store"
)

// CheckAdmission is why what admits the node of a folder, or others by its link, cannot be used; nil where that is whole, or there is
// none yet.
func CheckAdmission(dir string, g genesis.Genesis) error {
	key, err := store.ReadKey(dir)
	if err != nil {
		return nil // nobody was admitted, or the key is what is wrong
	}
	run := g.RunID()
	c, err := keptCertificate(dir, wire.PeerIDOf(key))
	if err != nil {
		return err
	}
	if c != nil && c.Verify(run, g.Owners) != nil {
		return fmt.Errorf("%s is of another run: delete it, then start with the join link", filepath.Join(dir, certificateFile))
	}
	text, err := keptText(dir, InviteFile)
	if err != nil || text == "" {
		return err
	}
	if pass, err := member.ParsePass(text); err != nil || pass.Check(run, g.Owners) != nil {
		return fmt.Errorf("%s is damaged, or of another run: delete it, and where the owner's key is the next start makes a new one", filepath.Join(dir, InviteFile))
	}
	return nil
}

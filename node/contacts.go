package node

import (
	"errors"
	"slices"
	"time"

	"atoll/gossip/p2p"
	"atoll/node/joinlink"
	"atoll/node/store"
)

// contactsEvery is how often contacts are written while the node runs.
const contactsEvery = 10 * time.Second

// recall takes contacts of an earlier start. Where the configuration names addresses, those
// are for a link that leads nowhere any more. Peers of a link are trusted, also peers of an
// earlier link. Peers that were met later are not.
func (n *node) recall() error {
	n.dials, n.linked = n.cfg.addrs(), n.cfg.Link.Peers
	n.named = peerIDs(n.linked)
	c, err := store.LoadContacts(n.cfg.Dir)
	if errors.Is(err, store.ErrContacts) {
		n.log.Warn("contacts of an earlier start are damaged; pass the link again if no peer is found", "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	if len(n.linked) == 0 {
		n.linked = c.Named[:min(len(c.Named), joinlink.MaxPeers)]
		n.named = peerIDs(n.linked)
	}
	met := c.Peers[:min(len(c.Peers), joinlink.MaxPeers)]
	if len(n.dials) == 0 {
		n.dials = slices.Concat(n.linked, met)
	} else {
		n.met = met
	}
	if len(n.cfg.Listen) == 0 {
		n.recalled = c.Listen
	}
	n.rememberLink(c)
	return nil
}

// rememberLink keeps whom the first link names at once: a start that fails before it meets anybody must not leave a folder that
// knows nobody, and so trains alone when it is started without the link. A later link is kept when somebody was met.
func (n *node) rememberLink(kept store.Contacts) {
	if len(kept.Named) > 0 || len(n.linked) == 0 {
		return
	}
	kept.Named = n.linked
	b, err := kept.Encode()
	if err == nil {
		err = n.cfg.disk.WriteFile(n.cfg.Dir, store.ContactsFile, b)
	}
	n.check("remember the link", err)
}

// remember writes the contacts, when there is news of them.
func (n *node) remember() {
	c := store.Contacts{Listen: n.host.Listening(), Named: n.linked, Peers: n.machine.Gossip().Peers().Contacts()}
	slices.Sort(c.Peers)
	b, err := c.Encode()
	if err != nil || len(c.Peers) == 0 || string(b) == n.contacts {
		return
	}
	n.contacts = string(b)
	n.work.disk.Put(func() { n.check("remember contacts", n.cfg.disk.WriteFile(n.cfg.Dir, store.ContactsFile, b)) })
}

// newHost listens where the node listened before if it may choose; where that is
// taken by now, anywhere.
func (n *node) newHost(cfg p2p.Config) (*p2p.Host, error) {
	if len(n.recalled) > 0 {
		again := cfg
		again.Listen = n.recalled
		if host, err := p2p.New(again); err == nil {
			return host, nil
		}
	}
	return p2p.New(cfg)
}

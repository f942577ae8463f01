package gossip

import (
	"errors"
	"fmt"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// certificates asks for what admits authors that this node hears of before their records come. Nobody
// is to blame for a stranger: who forwarded something of one has met it, or is asked in vain.
type certificates struct {
	*env
	asked map[wire.PeerID]Time // authors, and when a peer was last asked for theirs
	// waiting are those for the next question to a peer that has not answered the last one. All meet each other at once when a large
	// run starts, and a question for each author would be hundreds under way.
	waiting map[wire.PeerID][]member.Stranger
}

// maxStrangers bounds the authors that are being asked for; those asked for longest ago are
// forgotten first.
const maxStrangers = 1024

// strangerAgainMs is the least time between two questions about one author: its messages come over
// several peers, and its next heartbeat brings it up again.
const strangerAgainMs = 1000

// want asks the peer that forwarded something for what admits its author: the certificate that a
// header names, or any.
func (c *certificates) want(from wire.PeerID, s member.Stranger) {
	p := c.Find(from)
	if !c.Usable(p) || c.known(s) {
		return
	}
	if at, known := c.asked[s.Author]; known && c.Now < at+strangerAgainMs {
		return
	}
	waiting, asking := c.waiting[from]
	if asking && len(waiting) == wire.MaxAuthors {
		return
	}
	if len(c.asked) >= maxStrangers {
		c.forget()
	}
	c.asked[s.Author] = c.Now
	if c.waiting[from] = append(waiting, s); !asking {
		c.askOn(from)
	}
}

// askOn asks a peer for all that wait, unless they came meanwhile.
func (c *certificates) askOn(from wire.PeerID) {
	q := wire.Request{Kind: wire.GetCertificates}
	for _, s := range c.waiting[from] {
		if !c.known(s) {
			one := s.Request()
			q.Authors, q.Certificates = append(q.Authors, one.Authors...), append(q.Certificates, one.Certificates...)
		}
	}
	if len(q.Authors)+len(q.Certificates) == 0 || !c.Usable(c.Find(from)) {
		delete(c.waiting, from)
		return
	}
	c.waiting[from] = nil
	c.Call(from, q, wire.GetCertificates.MaxResponse(), effect.CallMs, func(body []byte, err error) {
		if err == nil {
			err = c.accept(body, q, c.cfg.Members.Add)
			if err != nil {
				c.Misbehaved(from, err.Error())
			}
		}
		c.askOn(from)
	})
}

// known reports whether what admits a stranger has come meanwhile.
func (c *certificates) known(s member.Stranger) bool {
	if s.Certificate.IsZero() {
		return len(c.cfg.Members.Of(s.Author)) > 0 // those of an author that is revoked are known as well
	}
	_, known := c.cfg.Members.Find(s.Certificate)
	return known
}

// lacking asks for the certificates that headers name and that are not known here, without those that were asked for already.
func (c *certificates) lacking(headers []wire.SignedHeader, asked []wire.Digest) wire.Request {
	q := wire.Request{Kind: wire.GetCertificates}
	for _, h := range headers {
		id := h.Header.Certificate
		if c.unknown(h) && !slices.Contains(asked, id) && !slices.Contains(q.Certificates, id) && len(q.Certificates) < wire.MaxAuthors {
			q.Certificates = append(q.Certificates, id)
		}
	}
	return q
}

// forget drops the older half of the authors asked for.
func (c *certificates) forget() {
	times := make([]Time, 0, len(c.asked))
	for _, at := range c.asked {
		times = append(times, at)
	}
	slices.Sort(times)
	middle := times[len(times)/2]
	for author, at := range c.asked {
		if at <= middle {
			delete(c.asked, author)
		}
	}
}

// accept keeps the certificates of an answer, by the table's Add or AddHeld. The error is for one that no
// honest peer gives.
func (c *certificates) accept(body []byte, q wire.Request, add func(member.Certificate) (bool, error)) error {
	list, err := wire.DecodeCertificates(body)
	if err != nil {
		return err
	}
	for _, b := range list {
		one, err := member.Parse(b)
		if err != nil {
			return err
		}
		if !slices.Contains(q.Authors, one.Author) && !slices.Contains(q.Certificates, one.ID(c.cfg.Run)) {
			return fmt.Errorf("certificate of %v: %w: it was not asked for", one.Author, wire.ErrInvalid)
		}
		if err := c.KeepCertificate(one, add); err != nil && !errors.Is(err, member.ErrFull) {
			return err
		}
	}
	return nil
}

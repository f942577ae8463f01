package member

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// Limits of a Table.
const (
	// MaxOwners bounds the owners of a run: a few people, each of whom can invite.
	MaxOwners = 16
	// maxOfInvite bounds the certificates of one invite that are kept, some 2 MB: who holds a leaked
	// one can sign keys without end, and takes room from nobody who came by another. Runs of
	// thousands take several invites.
	maxOfInvite = 1 << 12
	// maxInvites bounds the invites that certificates are kept of: owners make few.
	maxInvites = 1 << 10
)

// ErrUnknown says that the author of something has no certificate that is known here. One may
// come: nobody is to blame.
var ErrUnknown = errors.New("no certificate of its author is known here")

// ErrFull says that no more certificates are kept.
var ErrFull = errors.New("no room for more certificates")

// Table is the certificates of a run that a node knows. A nil Table is that of a run that is
// open to everybody. It is safe for use by several goroutines.
type Table struct {
	// Verify checks a certificate by the owners, nil by its own Verify. A simulator, all of whose nodes check the same ones, remembers what came out.
	Verify func(Certificate, []wire.PeerID) error

	run wire.RunID

	mu       sync.RWMutex
	owners   []wire.PeerID // none while genesis is not known: then invites are anybody's
	byID     map[wire.Digest]*Certificate
	byAuthor map[wire.PeerID][]*Certificate        // in the order in which they came
	ofInvite map[wire.PeerID]int                   // certificates, by the invite's key
	revoked  map[wire.PeerID]wire.SignedHeader     // by the name revoked: the owner's statement
	reasons  map[wire.PeerID]string                // of them, where they are known
	kept     map[uint64]uint64                     // by the number of an invite: how many of these have an author stay
	guests   int                                   // certificates of guests
	entering map[wire.PeerID]map[wire.PeerID]int64 // by a limited invite's key: whom Admit let in and no certificate is kept of yet, and when
	changes  uint64                                // of what a node is: see Changes
}

// NewTable knows the owners of a run, none before genesis is known, and nobody else.
func NewTable(run wire.RunID, owners []wire.PeerID) *Table {
	return &Table{run: run, owners: owners, byID: map[wire.Digest]*Certificate{}, byAuthor: map[wire.PeerID][]*Certificate{}, ofInvite: map[wire.PeerID]int{}, revoked: map[wire.PeerID]wire.SignedHeader{}, reasons: map[wire.PeerID]string{}, kept: map[uint64]uint64{}, entering: map[wire.PeerID]map[wire.PeerID]int64{}}
}

// Add verifies a certificate and keeps it, if there is room, and reports whether it was not known before.
func (t *Table) Add(c Certificate) (fresh bool, err error) { return t.add(c, false) }

// AddHeld is Add for the author of a delta that a peer holds in a set, whatever room there is: where
// one node takes an author's deltas all must, or their sets would never be equal. Nothing but signed
// headers bounds how many a member that lies can bring.
func (t *Table) AddHeld(c Certificate) (fresh bool, err error) { return t.add(c, true) }

func (t *Table) add(c Certificate, held bool) (fresh bool, err error) {
	id := c.ID(t.run)
	if _, known := t.Find(id); known {
		return false, nil
	}
	if err := t.verify(c, t.ownersNow()); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.byID[id]; known {
		return false, nil
	}
	if !held && !t.room(c) {
		return false, fmt.Errorf("certificate of %v: %w of its invite", c.Author, ErrFull)
	}
	delete(t.entering[c.Invite.Key], c.Author)
	t.changes++
	t.keep(id, &c)
	return true, nil
}

// keep has a certificate known. The caller holds the lock.
func (t *Table) keep(id wire.Digest, c *Certificate) {
	t.ofInvite[c.Invite.Key]++
	if c.Invite.Guests {
		t.guests++
	}
	t.byID[id] = c
	t.byAuthor[c.Author] = append(t.byAuthor[c.Author], c)
}

func (t *Table) verify(c Certificate, owners []wire.PeerID) error {
	if t.Verify != nil {
		return t.Verify(c, owners)
	}
	return c.Verify(t.run, owners)
}

// room reports whether another certificate of an invite is kept. The caller holds the lock.
func (t *Table) room(c Certificate) bool {
	n := t.ofInvite[c.Invite.Key]
	return n < maxOfInvite && (n > 0 || len(t.ofInvite) < maxInvites)
}

// hasRoom is room, for a certificate that may be known already.
func (t *Table) hasRoom(c Certificate) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, known := t.byID[c.ID(t.run)]
	return known || t.room(c)
}

// SetOwners says who the owners are, once genesis is known, and forgets whom none of them invited. Nobody sees it half done: who is
// still invited is never a stranger.
func (t *Table) SetOwners(owners []wire.PeerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owners = slices.Clone(owners)
	before := t.byAuthor
	t.byAuthor = map[wire.PeerID][]*Certificate{}
	clear(t.byID)
	clear(t.ofInvite)
	t.guests = 0
	t.changes++
	for _, came := range before {
		for _, c := range came {
			if t.verify(*c, t.owners) == nil {
				t.keep(c.ID(t.run), c)
			}
		}
	}
}

func (t *Table) ownersNow() []wire.PeerID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.owners
}

// owns reports whether a key is an owner's.
func (t *Table) owns(key wire.PeerID) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Contains(t.owners, key)
}

// Changes grows when somebody is admitted or revoked: until then each node stays what it is, a member or a guest.
func (t *Table) Changes() uint64 {
	if t == nil {
		return 0
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.changes
}

// Find returns a certificate by its digest.
func (t *Table) Find(id wire.Digest) (Certificate, bool) {
	if t == nil {
		return Certificate{}, false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if c, ok := t.byID[id]; ok {
		return *c, true
	}
	return Certificate{}, false
}

// Of returns the certificates of a node, in the order in which they came.
func (t *Table) Of(author wire.PeerID) []Certificate {
	if t == nil {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	var found []Certificate
	for _, c := range t.byAuthor[author] {
		found = append(found, *c)
	}
	return found
}

// Answer is the body that answers a request for certificates: those of the digests, and one of each
// author.
func (t *Table) Answer(r wire.Request) []byte {
	list := [][]byte{}
	for _, id := range r.Certificates {
		if c, known := t.Find(id); known {
			list = append(list, c.Encode())
		}
	}
	for _, a := range r.Authors {
		if of := t.Of(a); len(of) > 0 {
			list = append(list, slices.MaxFunc(of, t.byWorth).Encode())
		}
	}
	return wire.EncodeCertificates(list)
}

// byWorth orders the certificates of a node by what they make of it, for who knows none of them: nothing where
// they are revoked, a guest, a member.
func (t *Table) byWorth(a, b Certificate) int {
	worth := func(c Certificate) int {
		switch {
		case t.Revoked(c) != nil:
			return 0
		case c.Invite.Guests:
			return 1
		}
		return 2
	}
	return cmp.Compare(worth(a), worth(b))
}

// All returns all certificates, by author, then digest.
func (t *Table) All() []Certificate {
	if t == nil {
		return nil
	}
	t.mu.RLock()
	all := make([]Certificate, 0, len(t.byID))
	for _, c := range t.byID {
		all = append(all, *c)
	}
	t.mu.RUnlock()
	slices.SortFunc(all, func(a, b Certificate) int {
		return cmp.Or(a.Author.Compare(b.Author), a.ID(t.run).Compare(b.ID(t.run)))
	})
	return all
}

// Member reports whether a node may speak in the run: nobody needs a certificate, or it has one
// that is not revoked.
func (t *Table) Member(author wire.PeerID) bool {
	if t == nil {
		return true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.ContainsFunc(t.byAuthor[author], func(c *Certificate) bool { return !t.isRevoked(c) })
}

// Out reports whether all that admits a node is revoked.
func (t *Table) Out(author wire.PeerID) bool {
	return t != nil && len(t.Of(author)) > 0 && !t.Member(author)
}

// Guest reports whether a node came by invites for guests alone: its claims count nowhere.
// Certificates that are revoked do not count while it has another, so who was a member and comes
// back by a link for guests is a guest. It is false for a node of which no certificate is known.
func (t *Table) Guest(author wire.PeerID) bool {
	if t == nil {
		return false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.guests == 0 {
		return false // asked of all peers many times a second
	}
	guest, wasGuest, wasMember := false, false, false
	for _, c := range t.byAuthor[author] {
		switch revoked := t.isRevoked(c); {
		case c.Invite.Guests && revoked:
			wasGuest = true
		case c.Invite.Guests:
			guest = true
		case !revoked:
			return false
		default:
			wasMember = true
		}
	}
	return guest || wasGuest && !wasMember
}

// Bound is the first of Bounds: an invite, and for how many nodes it is meant, 0 where nothing bounds a member.
func (t *Table) Bound(author wire.PeerID) (invite wire.PeerID, uses uint32) {
	bounds := t.Bounds(author)
	if len(bounds) == 0 {
		return invite, 0
	}
	return bounds[0].Key, bounds[0].Uses
}

// Bounds are the invites of a member that bound what it may say, the one for most nodes first: none where nothing
// bounds it. Whoever has an invite can give it to members that came by another, so none of these may be held
// against a member alone.
func (t *Table) Bounds(author wire.PeerID) (bounds []Invite) {
	if t == nil {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, c := range t.byAuthor[author] {
		switch v := c.Invite; {
		case v.Guests || t.isRevoked(c):
		case v.Uses == 0:
			return nil
		default:
			bounds = append(bounds, v)
		}
	}
	slices.SortFunc(bounds, func(a, b Invite) int { return cmp.Or(cmp.Compare(b.Uses, a.Uses), a.Key.Compare(b.Key)) })
	return bounds
}

// GuestHeader reports whether a header names the certificate of a guest. It is false for one that is not known here.
func (t *Table) GuestHeader(h wire.Header) bool {
	c, known := t.Find(h.Certificate)
	return known && c.Invite.Guests
}

// Binds reports whether a header binds its author, so that another one for the same round proves that the author lies. Those of
// guests do not, as their keys are free: such a proof would cost a liar nothing. Nor do those whose certificate is not known here.
func (t *Table) Binds(h wire.Header) bool {
	if t == nil {
		return true
	}
	c, known := t.Find(h.Certificate)
	return known && !c.Invite.Guests
}

// Proves reports whether both headers of an equivocation proof bind their author.
func (t *Table) Proves(e wire.Equivocation) bool { return t.Binds(e.A.Header) && t.Binds(e.B.Header) }

// Invites are the keys of the invites by which an author came.
func (t *Table) Invites(author wire.PeerID) (keys [][32]byte) {
	for _, c := range t.Of(author) {
		keys = append(keys, c.Invite.Key)
	}
	return keys
}

// CheckHeader tells whether admission lets a delta into the run, from its header alone. It is
// ErrUnknown while the certificate that the header names is not known here.
func (t *Table) CheckHeader(h wire.Header) error {
	if t == nil {
		if !h.Certificate.IsZero() {
			return fmt.Errorf("certificate is %v: admission to this run is open, use none", h.Certificate)
		}
		return nil
	}
	if h.Revocation() {
		return t.checkOwner(h.Author)
	}
	if h.Certificate.IsZero() {
		return errors.New("no certificate: this run admits by invitation")
	}
	c, known := t.Find(h.Certificate)
	switch {
	case !known:
		return ErrUnknown
	case c.Author != h.Author:
		return fmt.Errorf("certificate %v is of %v, not of the author", h.Certificate, c.Author)
	}
	return nil
}

// Stranger is an author that nothing known here admits, and the certificate that it names, if it
// names one.
type Stranger struct {
	Author      wire.PeerID
	Certificate wire.Digest
}

// Error names the author.
func (s *Stranger) Error() string { return fmt.Sprintf("%v is not known to be admitted", s.Author) }

// VerifyMessage checks a gossip message of a run, whose members t has and which wire.Decode made of raw. The error is a
// *Stranger for one whose author nobody here knows to be admitted.
func VerifyMessage(run wire.RunID, t *Table, m wire.Message, raw []byte) error {
	if err := m.Verify(run, raw); err != nil {
		return err
	}
	if s, stranger := t.Stranger(m); stranger {
		return &s
	}
	return nil
}

// Request asks for what admits the stranger.
func (s Stranger) Request() wire.Request {
	q := wire.Request{Kind: wire.GetCertificates}
	if s.Certificate.IsZero() {
		q.Authors = []wire.PeerID{s.Author}
	} else {
		q.Certificates = []wire.Digest{s.Certificate}
	}
	return q
}

// Stranger returns the author of a gossip message if nobody here knows what admits it, or it is revoked, or the message is
// an equivocation proof that proves nothing. Such a message is neither passed on nor counted against who sent it.
func (t *Table) Stranger(m wire.Message) (s Stranger, stranger bool) {
	switch {
	case t == nil:
		return s, false
	case m.Header != nil && m.Header.Header.Revocation():
		return Stranger{Author: m.Header.Header.Author}, !t.owns(m.Header.Header.Author)
	case m.Header != nil:
		h := m.Header.Header
		c, known := t.Find(h.Certificate)
		return Stranger{h.Author, h.Certificate}, !known || c.Author != h.Author || t.Revoked(c) != nil
	case m.Heartbeat != nil:
		s.Author = m.Heartbeat.Author
	case m.Equivocation != nil:
		for _, h := range []wire.Header{m.Equivocation.A.Header, m.Equivocation.B.Header} {
			if s = (Stranger{h.Author, h.Certificate}); !t.Binds(h) {
				return s, true
			}
		}
	}
	return s, !t.Member(s.Author)
}

// CertificateIn is the certificate of a record, which has to be its author's.
func CertificateIn(r hello.Record) (Certificate, error) {
	if len(r.Certificate) == 0 {
		return Certificate{}, errors.New("the node has no certificate")
	}
	c, err := Parse(r.Certificate)
	if err == nil && c.Author != r.Author {
		err = fmt.Errorf("certificate of %v: %w: it is in the record of another node", c.Author, wire.ErrInvalid)
	}
	return c, err
}

// Came is how many authors are known of an invite: those take its uses.
func (t *Table) Came(invite wire.PeerID) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.ofInvite[invite]
}

// enterMs is how long a node that Admit let in may take until its certificate is kept: a handshake, and a turn of the loop.
const enterMs = 30_000

// enter lets one more author in by a limited invite, unless as many are known or about to enter as the invite is for. Authors that are
// gone or revoked have had their use: else who is thrown out would come again with a new key. nowMs is 0 at a node that does not know yet whom it knew before.
func (t *Table) enter(c Certificate, visits bool, nowMs int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := c.Invite
	_, known := t.byID[c.ID(t.run)]
	if known || v.Uses == 0 || v.Alone || nowMs == 0 {
		return nil
	}
	waiting := t.entering[v.Key]
	maps.DeleteFunc(waiting, func(author wire.PeerID, at int64) bool { return author == c.Author || nowMs-at > enterMs })
	if came := t.ofInvite[v.Key] + len(waiting); came >= int(v.Uses) {
		machines := "machines"
		if v.Uses == 1 {
			machines = "machine"
		}
		return fmt.Errorf("this link was for %d %s, and %d came", v.Uses, machines, came)
	}
	if visits {
		return nil
	}
	if waiting == nil {
		waiting = map[wire.PeerID]int64{}
		t.entering[v.Key] = waiting
	}
	waiting[c.Author] = nowMs
	return nil
}

// Admit judges a peer by its capability record at a time in Unix ms. Its error says why it is
// refused, in words for both sides. It makes nobody known: who was refused by another check must not
// be.
func (t *Table) Admit(r hello.Record, nowMs int64) error {
	if t == nil {
		return nil
	}
	c, err := CertificateIn(r)
	switch {
	case err != nil:
	case t.Revoked(c) != nil:
		err = t.Revoked(c)
	case c.Invite.Expired(nowMs) && !t.Member(r.Author):
		err = errors.New("its invite has expired")
	case !t.hasRoom(c):
		err = fmt.Errorf("its invite has admitted all the nodes that others keep, %d", maxOfInvite)
	default:
		if err = t.verify(c, t.ownersNow()); err == nil {
			err = t.enter(c, r.Visits, nowMs)
		}
	}
	if err != nil {
		return fmt.Errorf("this run admits by invitation: %w; ask the run's owner for a new link, which `atoll invite` prints", err)
	}
	return nil
}

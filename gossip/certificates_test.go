package gossip

import (
	"crypto/ed25519"
	"slices"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// guarded is a core in a run that admits by invitation.
type guarded struct {
	*alone
	owner, invite ed25519.PrivateKey
	members       *member.Table
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{alone: newAlone(), owner: testKey(100), invite: testKey(101)}
	g.members = member.NewTable(g.run, []wire.PeerID{wire.PeerIDOf(g.owner)})
	key := testKey(0)
	if _, err := g.members.Add(g.certificate(t, key)); err != nil {
		t.Fatal(err)
	}
	g.core = New(Config{Self: wire.PeerIDOf(key), Key: key, Run: g.run, HeartbeatMinMs: 1000, Members: g.members}, g.chain)
	g.core.SetSelf(0, peers.SelfState{State: wire.Training})
	return g
}

func (g *guarded) certificate(t *testing.T, node ed25519.PrivateKey) member.Certificate {
	t.Helper()
	c, err := member.Issue(g.owner, g.run, member.Invite{}, g.invite).Admit(g.run, node)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// meets connects a node, with its certificate.
func (g *guarded) meets(t *testing.T, node ed25519.PrivateKey) wire.PeerID {
	t.Helper()
	id := wire.PeerIDOf(node)
	g.core.Step(g.now, PeerUp{Peer: id, Record: hello.Record{Author: id, Certificate: g.certificate(t, node).Encode()}})
	return id
}

// answers gives the answer to the only call under way.
func (g *guarded) answers(t *testing.T, kind wire.RequestKind, body []byte) []Effect {
	t.Helper()
	for _, c := range calls(g.core.Effects()) {
		if r, err := wire.DecodeRequest(c.Request); err == nil && r.Kind == kind {
			g.core.Step(g.now, Answered{Call: c.ID, Response: wire.Found(body), TookMs: 1})
			return g.core.Effects()
		}
	}
	t.Fatalf("nobody is asked for %v", kind)
	return nil
}

// Who has no certificate is not met, and whose has, is: its certificate is to be kept.
func TestPeersAreMembers(t *testing.T) {
	g := newGuarded(t)
	id := g.meets(t, testKey(1))
	if admitted := find[Admitted](g.core.Effects()); len(admitted) != 1 || admitted[0].Certificate.Author != id || !g.members.Member(id) {
		t.Errorf("admitted %v", admitted)
	}
	stranger := wire.PeerIDOf(testKey(2))
	g.core.Step(g.now, PeerUp{Peer: stranger, Record: hello.Record{Author: stranger}})
	if g.core.env.Find(stranger) != nil || count[Admitted](g.core.Effects()) != 0 {
		t.Error("a peer without a certificate is met")
	}
}

// A stranger's message has the peer that brought it asked for the stranger's certificate, once in a
// while.
func TestStrangersAreAskedFor(t *testing.T) {
	g := newGuarded(t)
	from := g.meets(t, testKey(1))
	third := testKey(3)
	author := wire.PeerIDOf(third)
	g.core.Step(g.now, Stranger{From: from, Stranger: member.Stranger{Author: author}})
	e := g.answers(t, wire.GetCertificates, wire.EncodeCertificates([][]byte{g.certificate(t, third).Encode()}))
	if !g.members.Member(author) || count[Admitted](e) != 1 {
		t.Errorf("the stranger is not known: %v", e)
	}
	g.core.Step(g.now, Stranger{From: from, Stranger: member.Stranger{Author: author}})
	if n := len(calls(g.core.Effects())); n != 0 {
		t.Errorf("%d calls for one that is known", n)
	}
	for i := range 3 {
		g.now += strangerAgainMs / 2
		g.core.Step(g.now, Stranger{From: from, Stranger: member.Stranger{Author: wire.PeerID{77}}})
		made := calls(g.core.Effects())
		if asked := len(made) == 1; asked != (i%2 == 0) {
			t.Errorf("after %d ms: asked is %v", (i+1)*strangerAgainMs/2, asked)
		}
		for _, c := range made {
			g.core.Step(g.now, Answered{Call: c.ID, Response: wire.Found(wire.EncodeCertificates(nil)), TookMs: 1})
		}
	}
}

// Many strangers at once are asked for by one question at a time to a peer, and the next one has all that came meanwhile.
func TestManyStrangersShareAQuestion(t *testing.T) {
	g := newGuarded(t)
	from := g.meets(t, testKey(1))
	g.core.Effects()
	var keys []ed25519.PrivateKey
	for i := range 3 * wire.MaxAuthors {
		keys = append(keys, testKey(10+i))
		g.core.Step(g.now, Stranger{From: from, Stranger: member.Stranger{Author: wire.PeerIDOf(keys[i])}})
	}
	for _, want := range []int{1, wire.MaxAuthors, 0} {
		made := calls(g.core.Effects())
		if len(made) != min(want, 1) {
			t.Fatalf("%d questions, want one of %d authors", len(made), want)
		}
		if want == 0 {
			break
		}
		q, err := wire.DecodeRequest(made[0].Request)
		if err != nil || len(q.Authors) != want {
			t.Fatalf("%d authors, %v; want %d", len(q.Authors), err, want)
		}
		var list [][]byte
		for _, k := range keys {
			if slices.Contains(q.Authors, wire.PeerIDOf(k)) {
				list = append(list, g.certificate(t, k).Encode())
			}
		}
		g.core.Step(g.now, Answered{Call: made[0].ID, Response: wire.Found(wire.EncodeCertificates(list)), TookMs: 1})
	}
	if known := len(g.members.All()); known != 2+1+wire.MaxAuthors {
		t.Errorf("%d members are known", known)
	}
	// Those beyond were not marked as asked for: the next message of theirs brings them up.
	g.core.Step(g.now, Stranger{From: from, Stranger: member.Stranger{Author: wire.PeerIDOf(keys[len(keys)-1])}})
	if n := len(calls(g.core.Effects())); n != 1 {
		t.Errorf("%d questions about one that was left", n)
	}
}

// Who is known by one certificate and signs by another has that one asked for.
func TestAnotherCertificateIsAskedFor(t *testing.T) {
	g := newGuarded(t)
	from := g.meets(t, testKey(1))
	author := testKey(3)
	g.meets(t, author)
	g.core.Effects()
	again, err := member.Issue(g.owner, g.run, member.Invite{}, testKey(102)).Admit(g.run, author)
	if err != nil {
		t.Fatal(err)
	}
	g.core.Step(g.now, Stranger{From: from, Stranger: member.Stranger{Author: wire.PeerIDOf(author), Certificate: again.ID(g.run)}})
	g.answers(t, wire.GetCertificates, wire.EncodeCertificates([][]byte{again.Encode()}))
	if _, known := g.members.Find(again.ID(g.run)); !known {
		t.Error("it is not known")
	}
}

// Who came in while this node did not know yet who is admitted is given nothing but the genesis.
func TestOutsidersAreServedTheGenesisAlone(t *testing.T) {
	g := newGuarded(t)
	for kind, want := range map[wire.RequestKind]wire.Status{wire.GetPeerList: wire.Refused, wire.GetManifest: wire.Refused, wire.GetCertificates: wire.Refused} {
		g.core.Step(g.now, Requested{Handle: 1, From: wire.PeerID{9}, Request: wire.Request{Kind: kind}.Encode()})
		if st := status(g.core.Effects()); st != want {
			t.Errorf("%v: %v", kind, st)
		}
	}
	g.core.Step(g.now, Requested{Handle: 2, From: wire.PeerID{9}, Request: wire.Request{Kind: wire.GetGenesis, Run: g.run}.Encode()})
	if n := count[ReplyGenesis](g.core.Effects()); n != 1 {
		t.Errorf("%d answers with the genesis", n)
	}
}

// An answer with a certificate that nobody asked for, or that is forged, is a fault of the peer. That
// it knows none is not.
func TestCertificatesOfLiars(t *testing.T) {
	other := testKey(5)
	for name, c := range map[string]struct {
		list  func(g *guarded) [][]byte
		fault bool
	}{
		"none":           {func(*guarded) [][]byte { return nil }, false},
		"another's":      {func(g *guarded) [][]byte { return [][]byte{g.certificate(t, other).Encode()} }, true},
		"no certificate": {func(*guarded) [][]byte { return [][]byte{{1, 2, 3}} }, true},
		"forged": {func(g *guarded) [][]byte {
			c, err := member.Issue(other, g.run, member.Invite{}, g.invite).Admit(g.run, testKey(3))
			if err != nil {
				t.Fatal(err)
			}
			return [][]byte{c.Encode()}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t)
			from := g.meets(t, testKey(1))
			g.core.Step(g.now, Stranger{From: from, Stranger: member.Stranger{Author: wire.PeerIDOf(testKey(3))}})
			list := [][]byte{}
			list = append(list, c.list(g)...)
			e := g.answers(t, wire.GetCertificates, wire.EncodeCertificates(list))
			if faults := count[Misbehaved](e); (faults == 1) != c.fault || len(g.members.All()) != 2 {
				t.Errorf("%d faults, %d members", faults, len(g.members.All()))
			}
		})
	}
}

// A flood of strangers takes bounded memory.
func TestStrangersAreBounded(t *testing.T) {
	g := newGuarded(t)
	from := g.meets(t, testKey(1))
	for i := range 4 * maxStrangers {
		g.core.Step(g.now, Stranger{From: from, Stranger: member.Stranger{Author: wire.PeerID{byte(i), byte(i >> 8), 9}}})
		if n := len(g.core.certificates.asked); n > maxStrangers {
			t.Fatalf("%d authors", n)
		}
		g.core.Effects()
	}
}

func specCertificatesAnswered(t *testing.T, _ *spectest.Spec) {
	g := newGuarded(t)
	first, second := testKey(1), testKey(2)
	g.meets(t, first)
	g.core.Effects()
	of := func(k ed25519.PrivateKey) member.Certificate { return g.certificate(t, k) }
	asks := wire.Request{
		Kind:         wire.GetCertificates,
		Certificates: []wire.Digest{of(second).ID(g.run), of(testKey(0)).ID(g.run)}, Authors: []wire.PeerID{wire.PeerIDOf(first), wire.PeerIDOf(second)},
	}
	g.core.Step(g.now, Requested{Handle: 1, From: wire.PeerIDOf(first), Request: asks.Encode()})
	body, err := wire.OpenResponse(find[Reply](g.core.Effects())[0].Response, wire.GetCertificates.MaxResponse())
	if err != nil {
		t.Fatal(err)
	}
	list, err := wire.DecodeCertificates(body)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d certificates, %v", len(list), err)
	}
	for i, want := range []member.Certificate{of(testKey(0)), of(first)} {
		if c, err := member.Parse(list[i]); err != nil || c != want {
			t.Errorf("certificate %d is %+v, %v", i, c, err)
		}
	}
}

// In a repair headers of authors that are not known here have the peer asked for their certificates.
// With them they are taken, else they are not. A peer that has none either is not to blame.
func specCertificatesOfHeaders(t *testing.T, _ *spectest.Spec) {
	for _, gives := range []bool{true, false} {
		g := newGuarded(t)
		from := g.meets(t, testKey(1))
		g.core.Effects()
		third := testKey(3)
		c := g.certificate(t, third)
		h := wire.SignHeader(third, g.run, wire.Header{Round: 1, Steps: 1, Size: 3000, Certificate: c.ID(g.run)})
		s := &session{peer: g.core.env.Find(from), until: g.now + repairTtlMs, waiting: map[wire.Digest]uint16{}, fragments: make([]comparison, g.chain.Fragments()),
			todo: []wire.RoundKey{{Fragment: 0, Round: 1}}}
		g.core.repair.sessions = append(g.core.repair.sessions, s)
		g.core.repair.reconcile(s)
		for _, call := range calls(g.core.Effects()) {
			g.core.Step(g.now, Answered{Call: call.ID, Response: wire.Found(wire.EncodeHeaders([]wire.SignedHeader{h})), TookMs: 1})
		}
		list := [][]byte{}
		if gives {
			list = append(list, c.Encode())
		}
		e := g.answers(t, wire.GetCertificates, wire.EncodeCertificates(list))
		if offers, faults := count[Offer](e), count[Misbehaved](e); (offers == 1) != gives || faults != 0 || g.members.Member(wire.PeerIDOf(third)) != gives {
			t.Errorf("a certificate given is %v: %d offers, %d faults", gives, offers, faults)
		}
		if waits := g.core.repair.active(s); waits != gives {
			t.Errorf("a certificate given is %v: waits for the payload %v", gives, waits)
		}
	}
}

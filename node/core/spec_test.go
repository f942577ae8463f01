package core_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"testing"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
	"atoll/optimizer/rounds"
	"atoll/tensor"
)

// One test for each clause of gossip/wire/SPEC.md that is about snapshots, or about headers
// as deltas of a run.
func TestSpec(t *testing.T) {
	spectest.Run(t, "S", map[string]spectest.Clause{
		"S-1": specBlob, "S-1.2": specLinksInOrder, "S-2": specLink, "S-2.2": specLinkTip, "S-2.3": specUnknownState, "S-3": specBlobLength,
		"S-4": specLinks, "S-4.2": specFirstLink, "S-5": specLast, "S-6": specManifest, "S-7": specHistory, "S-8": specFolded,
		"S-8.2": specTokensAhead, "S-9": specUncertified, "S-9.2": specCertified,
	})
}

// The numbers of the table of life in gossip/SPEC.md are the numbers of the code.
func TestNumbersOfLife(t *testing.T) {
	s := spectest.Load(t)
	for name, n := range core.Numbers {
		if got := s.Number(t, "life", name); got != n {
			t.Errorf("%s is %d, the text says %d", name, n, got)
		}
	}
	if len(core.Numbers) != len(s.Table(t, "life")) {
		t.Error("the table has other rows")
	}
}

// specRun is the run and fragment of the text's example of folds.
func specRun() (outer.Params, outer.Fragment) {
	p := outertest.Plain(1, 150, 0)
	p.Mu = 0.5
	views := tensor.Layout([]tensor.Spec{{Name: "model.embed_tokens.weight", Shape: []int{2}}, {Name: "w", Shape: []int{3}}})
	return p, outer.NewPlan(views, 1)[0]
}

// manifestOf is what a manifest says of the example.
func manifestOf(t testing.TB, s *spectest.Spec) wire.FragmentManifest {
	tip := s.Hex(t, "tip 2")
	return wire.FragmentManifest{Round: 2, Closed: 2, Chain: wire.Digest(tip[24:56]), State: wire.Sum(tip)}
}

// linksAt is where the links of the example begin, behind their number.
const linksAt = 8 + 104 + 4

// decode takes a snapshot that differs from the example by a change.
func decode(t testing.TB, s *spectest.Spec, change func(b []byte) []byte) error {
	p, f := specRun()
	_, _, err := core.DecodeSnapshot(change(s.Hex(t, "snapshot")), manifestOf(t, s), f, p)
	return err
}

// refuses fails unless each changed snapshot is refused.
func refuses(t *testing.T, s *spectest.Spec, changes map[string]func(b []byte) []byte) {
	t.Helper()
	if err := decode(t, s, bytes.Clone); err != nil {
		t.Fatal(err)
	}
	for name, change := range changes {
		if decode(t, s, change) == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// flip changes the byte at an offset.
func flip(at int) func(b []byte) []byte {
	return func(b []byte) []byte { b[at] ^= 1; return b }
}

func specBlob(t *testing.T, s *spectest.Spec) {
	raw, tip := s.Hex(t, "snapshot"), s.Hex(t, "tip 2")
	if n := binary.BigEndian.Uint64(raw); n != uint64(len(tip)) || !bytes.Equal(raw[8:8+n], tip) {
		t.Errorf("a tip of %d bytes", n)
	}
	if n := binary.BigEndian.Uint32(raw[8+len(tip):]); n != 2 {
		t.Errorf("%d links", n)
	}
	p, f := specRun()
	decoded, links, err := core.DecodeSnapshot(raw, manifestOf(t, s), f, p)
	if err != nil {
		t.Fatal(err)
	}
	if got := core.EncodeSnapshot(decoded.Encode(), links); !bytes.Equal(got, raw) {
		t.Errorf("encoded %x", got)
	}
}

func specLinksInOrder(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "snapshot")
	p, f := specRun()
	tip, links, err := core.DecodeSnapshot(raw, manifestOf(t, s), f, p)
	if err != nil {
		t.Fatal(err)
	}
	given, _ := tenRounds(t, 4)
	for _, got := range [][]outer.Link{links, given} {
		for i, l := range got {
			if l.Round != got[0].Round+uint32(i) {
				t.Errorf("link %d is of round %d, the first of %d", i, l.Round, got[0].Round)
			}
		}
	}
	if links[1].Round != tip.Round || given[len(given)-1].Round != 10 {
		t.Error("the last link is not of the tip's round")
	}
}

func specLink(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "snapshot")
	f := s.Layout(t, "link", raw[linksAt:linksAt+84])
	p, fragment := specRun()
	_, links, err := core.DecodeSnapshot(raw, manifestOf(t, s), fragment, p)
	if err != nil {
		t.Fatal(err)
	}
	got := links[0]
	if got.Round != binary.BigEndian.Uint32(f["round"]) || got.Tokens != binary.BigEndian.Uint64(f["tokens"]) ||
		got.EndRound != binary.BigEndian.Uint32(f["end round"]) || len(got.Folded) != int(binary.BigEndian.Uint32(f["ids"])) {
		t.Errorf("decoded %+v", got)
	}
	if !bytes.Equal(got.Chain[:], f["chain"]) || !bytes.Equal(got.State[:], f["state"]) || !bytes.Equal(got.State[:], s.Hex(t, "state 1")) {
		t.Errorf("chain %x, state %x", got.Chain, got.State)
	}
	for i, id := range got.Folded {
		if at := linksAt + 84 + 32*i; !bytes.Equal(id[:], raw[at:at+32]) {
			t.Errorf("id %d is %x", i, id)
		}
	}
	sent := core.EncodeSnapshot(nil, []outer.Link{outer.NextLink(p, outer.Link{}, []outer.Delta{{ID: outer.ID{2}}, {ID: outer.ID{3}}, {ID: outer.ID{1}}})})
	for i := range 3 {
		if at := 8 + 4 + 84 + 32*i; sent[at] != byte(i+1) {
			t.Errorf("id %d of a round that met them in another order is %x", i, sent[at:at+32])
		}
	}
}

func specLinkTip(t *testing.T, s *spectest.Spec) {
	p, f := specRun()
	_, links, err := core.DecodeSnapshot(s.Hex(t, "snapshot"), manifestOf(t, s), f, p)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"tip 1", "tip 2"} {
		tip, err := outer.DecodeTip(s.Hex(t, name), f, p)
		if l := links[i]; err != nil || l.Round != tip.Round || l.Tokens != tip.Tokens || l.EndRound != tip.EndRound {
			t.Errorf("%s, %v: the link is %+v", name, err, l)
		}
	}
}

func specUnknownState(t *testing.T, s *spectest.Spec) {
	p, f := specRun()
	sent := core.EncodeSnapshot(nil, []outer.Link{outer.NextLink(p, outer.Link{State: outer.Digest{7}}, nil)})
	if state := sent[8+4+36 : 8+4+68]; !bytes.Equal(state, make([]byte, 32)) {
		t.Errorf("a round that was not folded has state %x", state)
	}
	raw := s.Hex(t, "snapshot")
	clear(raw[linksAt+36 : linksAt+68])
	if _, links, err := core.DecodeSnapshot(raw, manifestOf(t, s), f, p); err != nil || links[0].State != (outer.Digest{}) {
		t.Errorf("a link without a state: %v", err)
	}
}

func specBlobLength(t *testing.T, s *spectest.Spec) {
	count := func(n uint32) func(b []byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint32(b[linksAt-4:], n); return b }
	}
	refuses(t, s, map[string]func(b []byte) []byte{
		"no link": count(0), "one link of two": count(1), "three links of two": count(3), "65538 links": count(65538),
		"a byte more": func(b []byte) []byte { return append(b, 0) },
	})
	for n := range len(s.Hex(t, "snapshot")) {
		if decode(t, s, func(b []byte) []byte { return b[:n] }) == nil {
			t.Errorf("%d bytes of it are taken", n)
		}
	}
}

func specLinks(t *testing.T, s *spectest.Spec) {
	second := linksAt + 84 + 64
	refuses(t, s, map[string]func(b []byte) []byte{
		"another first round": flip(linksAt + 3), "another second round": flip(second + 3), "another first chain": flip(linksAt + 4),
		"another id": flip(second + 84),
	})
}

// lastAlone is the example with its last link only.
func lastAlone(b []byte) []byte {
	b = slices.Concat(b[:linksAt], b[linksAt+84+64:])
	b[linksAt-1] = 1
	return b
}

func specFirstLink(t *testing.T, s *spectest.Spec) {
	if err := decode(t, s, flip(linksAt+84)); err != nil {
		t.Errorf("another id in the first link: %v", err)
	}
	if err := decode(t, s, func(b []byte) []byte { return flip(linksAt + 84)(lastAlone(b)) }); err != nil {
		t.Errorf("another id in the only link: %v", err)
	}
}

func specLast(t *testing.T, s *spectest.Spec) {
	if err := decode(t, s, lastAlone); err != nil {
		t.Fatal(err)
	}
	fields := map[string]func(b []byte) []byte{}
	for _, row := range s.Table(t, "link")[:5] {
		offset, err := strconv.Atoi(row[0])
		if err != nil {
			t.Fatal(err)
		}
		fields[row[2]] = func(b []byte) []byte { return flip(linksAt + offset)(lastAlone(b)) }
	}
	refuses(t, s, fields)
}

func specManifest(t *testing.T, s *spectest.Spec) {
	p, f := specRun()
	for name, change := range map[string]func(m *wire.FragmentManifest){
		"round": func(m *wire.FragmentManifest) { m.Round++ }, "chain": func(m *wire.FragmentManifest) { m.Chain[0]++ },
		"state": func(m *wire.FragmentManifest) { m.State[0]++ },
	} {
		m := manifestOf(t, s)
		change(&m)
		if _, _, err := core.DecodeSnapshot(s.Hex(t, "snapshot"), m, f, p); err == nil {
			t.Errorf("another %s is taken", name)
		}
	}
}

// tenRounds are the links that a snapshot source with windows of 10 and that many rounds sends with
// the tip of round 10, and all that it has.
func tenRounds(t testing.TB, accept uint32) (sent, history []outer.Link) {
	p, f := tiny()
	p.WindowUnion, p.WindowAccept = 10, accept
	tip := outer.Genesis(f, make([]float32, f.Len), p)
	history = []outer.Link{{Chain: tip.Chain, State: tip.State}}
	for round := uint32(1); round <= 10; round++ {
		history = append(history, outer.NextLink(p, history[round-1], nil))
	}
	tip.Round, tip.Chain = 10, history[10].Chain
	m := rounds.New(rounds.Config{Params: p, Self: outer.Author{1}}, []*outer.Tip{outer.Genesis(f, make([]float32, f.Len), p)})
	if err := m.Install(0, []*outer.Tip{tip}, [][]outer.Link{history}, nil); err != nil {
		t.Fatal(err)
	}
	return core.History(p, m, 0, 10), history
}

func specHistory(t *testing.T, _ *spectest.Spec) {
	for accept, first := range map[uint32]uint32{1: 1, 4: 4, 5: 5, 10: 5} {
		got, history := tenRounds(t, accept)
		at := slices.IndexFunc(history, func(l outer.Link) bool { return l.Round == first })
		if len(got) != len(history)-at || got[0].Round != first {
			t.Errorf("WindowAccept %d: %d links from round %d on", accept, len(got), got[0].Round)
		}
	}
}

func specFolded(t *testing.T, s *spectest.Spec) {
	p, f := specRun()
	p.Fragments = 2
	one, err := outer.DecodeTip(s.Hex(t, "tip 2"), f, p)
	if err != nil {
		t.Fatal(err)
	}
	small := outer.Fragment{Tensors: []outer.Tensor{{Name: "v", Offset: 5, Len: 3}}, Len: 3}
	two := outer.Genesis(small, make([]float32, 3), p)
	m := core.New(core.Config{Params: p, Plan: outer.Plan{f, small}, Key: ed25519.NewKeyFromSeed(s.Hex(t, "seed"))}, []*outer.Tip{one, two})
	want := uint64(5 * 162 / 8) // 101.25
	if got, known := m.TokensAt(one.Round, 0); got != want || !known || m.View().FoldedTokens() != want {
		t.Errorf("%d tokens folded, known %v; by the tips %d", got, known, m.View().FoldedTokens())
	}
	if _, known := m.TokensAt(one.Round+1, 0); known {
		t.Error("knows the tokens of a round that is open")
	}
}

func specTokensAhead(t *testing.T, s *spectest.Spec) {
	p, f := specRun()
	var link outer.Link
	for round, name := range []string{"tip 1", "tip 2"} {
		tip, err := outer.DecodeTip(s.Hex(t, name), f, p)
		if err != nil {
			t.Fatal(err)
		}
		var set []outer.Delta
		for _, row := range s.Table(t, "deltas") {
			if row[2] != strconv.Itoa(round+1) {
				continue
			}
			tokens, err := strconv.ParseUint(row[5], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			id, err := hex.DecodeString(strings.Repeat(row[1], 32))
			if err != nil {
				t.Fatal(err)
			}
			steps, err := strconv.ParseUint(row[4], 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			set = append(set, outer.Delta{ID: outer.ID(id), Round: uint32(round + 1), Base: uint32(round), Steps: uint32(steps), Tokens: tokens})
		}
		if link = outer.NextLink(p, link, set); link.Tokens != tip.Tokens || link.EndRound != tip.EndRound || link.Chain != tip.Chain {
			t.Errorf("round %d: %+v from the headers, the tip has %d tokens", round+1, link, tip.Tokens)
		}
	}
}

func specUncertified(t *testing.T, s *spectest.Spec) {
	p, f := specRun()
	key := ed25519.NewKeyFromSeed(s.Hex(t, "seed"))
	for certificate, want := range map[wire.Digest]int{{}: 0, wire.Digest(s.Hex(t, "certificate")): 1} {
		m := core.New(core.Config{Params: p, Plan: outer.Plan{f}, Key: key}, []*outer.Tip{outer.Genesis(f, make([]float32, f.Len), p)})
		h := wire.SignHeader(key, wire.RunID{}, wire.Header{
			Round: 1, Steps: 8, Tokens: 8, Codec: uint8(p.Codec), Size: 14, Certificate: certificate,
		})
		m.Step(1, gossip.Received{Message: wire.Message{Header: &h}})
		if refused, _ := m.View().Counts(); refused != uint64(want) {
			t.Errorf("certificate %v: %d headers refused, %v", certificate, refused, m.Effects())
		}
	}
}

func specCertified(t *testing.T, s *spectest.Spec) {
	p, f := specRun()
	run := wire.RunID(s.Hex(t, "run"))
	c, err := member.Parse(s.Hex(t, "member certificate"))
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(s.Hex(t, "seed"))
	take := func(members *member.Table, certificate wire.Digest) (refused, offered uint64) {
		m := core.New(core.Config{
			Params: p, Plan: outer.Plan{f}, Key: key, Run: run, Gossip: gossip.Config{Run: run, Members: members},
		}, []*outer.Tip{outer.Genesis(f, make([]float32, f.Len), p)})
		h := wire.SignHeader(key, run, wire.Header{
			Round: 1, Steps: 8, Tokens: 8, Codec: uint8(p.Codec), Size: 14, Certificate: certificate,
		})
		m.Step(1, gossip.Received{Message: wire.Message{Header: &h}})
		refused, _ = m.View().Counts()
		if known, _ := m.Rounds().Fragment(0).Known(1, outer.ID(h.Header.ID(run))); known {
			offered = 1
		}
		return refused, offered
	}
	members := member.NewTable(run, []wire.PeerID{wire.PeerIDOf(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32)))})
	if refused, offered := take(members, c.ID(run)); refused != 0 || offered != 0 {
		t.Errorf("a certificate that is not known: %d refused, %d taken", refused, offered)
	}
	if _, err := members.Add(c); err != nil {
		t.Fatal(err)
	}
	if refused, offered := take(members, c.ID(run)); refused != 0 || offered != 1 {
		t.Errorf("a member: %d refused, %d taken", refused, offered)
	}
	if refused, offered := take(members, wire.Digest{}); refused != 1 || offered != 0 {
		t.Errorf("no certificate: %d refused, %d taken", refused, offered)
	}
}

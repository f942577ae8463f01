package store

import (
	"crypto/ed25519"
	"maps"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// tokensOf is how many tokens count in these tests, not all of them, and the fewer the more deltas a round has.
func tokensOf(round []wire.Header) []uint64 {
	counts := make([]uint64, len(round))
	for i, h := range round {
		counts[i] = h.Tokens - uint64(len(round))
	}
	return counts
}

// sumsBy adds up what CountAuthors should come to, from the records.
func sumsBy(t interface{ Fatal(...any) }, s *Store, fragment int, last uint32) map[wire.PeerID]AuthorSum {
	sums := map[wire.PeerID]AuthorSum{}
	err := s.Rounds(fragment, 1, last, func(round uint32, r Round) error {
		var headers []wire.Header
		var places []uint32
		for nth, id := range r.Folded {
			if h, err := s.Header(id); err == nil {
				headers, places = append(headers, h.Header), append(places, uint32(nth))
			}
		}
		for i, count := range tokensOf(headers) {
			h := headers[i]
			sums[h.Author] = sums[h.Author].add(Place{round, places[i]}, count, h.Tokens-count)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// Whatever is recorded, counted, truncated and recorded otherwise: what is counted is
// what is recorded.
func TestAuthorSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := tempDir(t)
		s, err := Open(dir, testRun)
		mustDo(t, err)
		last, counts := uint32(0), 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				through, sums, err := s.AuthorSums(1)
				mustDo(t, err)
				if want := sumsBy(t, s, 1, through); through > 0 && !maps.Equal(sums, want) || through == 0 && len(sums) > 0 {
					t.Fatalf("through round %d: %v, want %v", through, sums, want)
				}
			},
			"record": func(t *rapid.T) {
				last++
				var r Round
				for author := range rapid.ByteRange(0, 3).Draw(t, "authors") {
					d := makeDelta(author+1, 1, last)
					if r.Folded = append(r.Folded, d.id); author > 0 { // the first one's header is not known
						mustDo(t, d.put(s))
					}
				}
				mustDo(t, s.PutRound(1, last, r))
			},
			"count": func(t *rapid.T) {
				to := rapid.Uint32Range(0, last).Draw(t, "to")
				before, _, err := s.AuthorSums(1)
				mustDo(t, err, s.CountAuthors(1, to, tokensOf))
				if through, _, err := s.AuthorSums(1); err != nil || through != max(before, to) {
					t.Fatalf("counted through %d, %v, want %d", through, err, max(before, to))
				}
				counts++
			},
			"truncate": func(t *rapid.T) {
				last = rapid.Uint32Range(0, last).Draw(t, "after")
				mustDo(t, s.TruncateRounds(1, last))
			},
			"record again": func(t *rapid.T) {
				if last > 0 {
					mustDo(t, s.PutRound(1, rapid.Uint32Range(1, last).Draw(t, "round"), Round{}))
				}
			},
			"install": func(t *rapid.T) {
				in := tipsOf(last+1, rapid.Uint32Range(0, last).Draw(t, "keep"))
				mustDo(t, s.Install(in))
				last++
			},
			"reopen": func(t *rapid.T) {
				mustDo(t, s.Close())
				s, err = Open(dir, testRun)
				mustDo(t, err)
			},
		})
		mustDo(t, s.Close())
	})
}

// Records that are truncated while they are counted are not counted.
func TestCountingWhatIsTruncated(t *testing.T) {
	s := openTest(t, t.TempDir())
	d := makeDelta(1, 0, 1)
	must(t, d.put(s), s.PutRound(0, 1, Round{Folded: []wire.Digest{d.id}}))
	must(t, s.CountAuthors(0, 1, func(round []wire.Header) []uint64 {
		must(t, s.TruncateRounds(0, 0))
		return make([]uint64, len(round))
	}))
	if through, sums, err := s.AuthorSums(0); err != nil || through != 0 || len(sums) != 0 {
		t.Errorf("through round %d: %v, %v", through, sums, err)
	}
	if _, _, err := s.AuthorSums(-1); err == nil {
		t.Error("a fragment below 0 is accepted")
	}
}

// What an owner revoked is no work, whatever its tokens say.
func TestRevocationsAreNotCounted(t *testing.T) {
	s := openTest(t, t.TempDir())
	keep := wire.NewEnd(0, 1, wire.PeerID{255}, []wire.PeerID{{1}}, []byte("it leaked"))[0]
	sh := wire.SignHeader(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), testRun, keep)
	id := sh.Header.ID(testRun)
	must(t, s.PutDelta(id, sh, []byte("it leaked")), s.PutRound(0, 1, Round{Folded: []wire.Digest{id}}), s.CountAuthors(0, 1, tokensOf))
	if _, sums, err := s.AuthorSums(0); err != nil || len(sums) != 0 {
		t.Errorf("%v, %v", sums, err)
	}
}

func TestAuthorSumEntries(t *testing.T) {
	sum := AuthorSum{Deltas: 3, Tokens: 70, Beyond: 9, First: Place{5, 1}}
	if got := decodeAuthorSum(sum.encode()); got != sum {
		t.Errorf("%+v is read as %+v", sum, got)
	}
	if got := decodeAuthorSum(nil); got != (AuthorSum{}) {
		t.Errorf("a damaged entry is read as %+v", got)
	}
}

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

func TestBlockNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := wire.Header{Fragment: uint16(rapid.IntRange(0, wire.MaxFragments-1).Draw(t, "fragment")), Round: rapid.Uint32().Draw(t, "round")}
		name := payloadFile(wire.Digest{1}, h).name
		fragment, block, ok := parseBlock(name[:strings.LastIndex(name, "/")])
		first, last := roundsOf(block)
		if !ok || fragment != int(h.Fragment) || h.Round < first || h.Round > last || last-first != blockRounds-1 {
			t.Fatalf("round %d is in %s: fragment %d, rounds %d to %d, %v", h.Round, name, fragment, first, last, ok)
		}
	})
	for _, name := range []string{"", "0/0", "000", "000/", "000/0", "256/00000000", "-01/00000000", "000/99999999", "000/00000000/x"} {
		if _, _, ok := parseBlock(name); ok {
			t.Errorf("%q is a block", name)
		}
	}
}

// putAcross puts a delta into each of some blocks of fragment 0.
func putAcross(t *testing.T, s *Store, blocks ...uint32) (all []delta) {
	t.Helper()
	for _, block := range blocks {
		d := makeDelta(2, 0, block*blockRounds+1)
		must(t, d.put(s))
		all = append(all, d)
	}
	return all
}

// Payloads are in a folder for each block of rounds. It goes with the last of them, and comes
// again.
func TestPayloadFolders(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	all := putAcross(t, s, 0, 1, 2)
	folders := func(want ...string) {
		t.Helper()
		must(t, s.Flush())
		entries, err := os.ReadDir(filepath.Join(dir, deltasDir, "000"))
		must(t, err)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("folders %v, want %v", got, want)
		}
	}
	folders("00000000", "00000001", "00000002")
	must(t, s.DropPayload(all[1].id))
	folders("00000000", "00000002")
	must(t, all[1].put(s))
	folders("00000000", "00000001", "00000002")
	for _, d := range all {
		_, err := s.Payload(d.id)
		must(t, err, s.DropPayload(d.id))
	}
	folders()
}

// A start looks for what a crash left where payloads come and go, and does not read the folders
// between. What is left there goes when its block does.
func TestLitterOfPayloads(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	all := putAcross(t, s, 2, 3, 4, 5, 6)
	must(t, s.PutBase(0, 5*blockRounds, encoded("tip")), s.Close())
	name := hexName(wire.Digest{9})
	for block := range uint32(9) {
		path := filepath.Join(dir, deltasDir, filepath.FromSlash(blockName(0, block)))
		must(t, os.MkdirAll(path, 0o700), os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600))
	}
	litter := func() (blocks string) {
		for _, file := range names(t, dir, deltasDir) {
			if strings.HasSuffix(file, name) {
				blocks += file[len("000/0000000"):len("000/00000000")]
			}
		}
		return blocks
	}
	s = openTest(t, dir)
	if left := litter(); left != "34" {
		t.Errorf("litter in blocks %s, want 3 and 4", left)
	}
	for _, d := range all[:2] {
		_, err := s.Payload(d.id)
		must(t, err, s.DropPayload(d.id))
	}
	must(t, s.Close())
	s = openTest(t, dir)
	if left := litter(); left != "" {
		t.Errorf("litter in blocks %s", left)
	}
	if files := names(t, dir, deltasDir); len(files) != 3 {
		t.Errorf("payloads %v", files)
	}
	must(t, s.Close())
}

// However many rounds there are, no folder has more than some thousand entries.
func TestNoFolderIsLarge(t *testing.T) {
	const rounds, deltas, most = 42_000, 16, 4096 // of each fragment of a million rounds
	if files := blockRounds * deltas; files > most {
		t.Errorf("%d payloads in a folder", files)
	}
	if blocks := rounds / blockRounds; blocks > most {
		t.Errorf("%d folders of payloads in one", blocks)
	}
	if segments := rounds / segmentRounds; segments > most {
		t.Errorf("%d segments in a folder", segments)
	}
	if got := fmt.Sprint(payloadFile(wire.Digest{}, wire.Header{Fragment: 7, Round: 42_000}).name[:12]); got != "007/00000656" {
		t.Errorf("round 42000 is in %s", got)
	}
}

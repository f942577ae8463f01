package wire

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/golden.txt")

const goldenPath = "testdata/golden.txt"

// golden lists one sample of everything that travels. A line that changes is a
// change of protocol: it needs a new Version.
func golden() []byte {
	var b bytes.Buffer
	line := func(name string, raw []byte) { fmt.Fprintf(&b, "%s\n  %s\n", name, hex.EncodeToString(raw)) }
	all := messages()
	for _, name := range []string{"header", "inline", "beat", "evidence"} {
		line("message "+name, all[name])
	}
	for _, r := range testRequests() {
		line("request "+r.Kind.String(), r.Encode())
	}
	for s := OK; s <= Refused; s++ {
		line("response "+s.String(), Response{Status: s, Body: []byte("body")}.Encode())
	}
	line("body roster", EncodeRoster([][]byte{{1}, {2, 3}}))
	line("body rounds", EncodeRounds(testAnswers()))
	line("body headers", EncodeHeaders([]SignedHeader{testEvidence().A}))
	line("body manifest", EncodeManifest(testKey(1), testRun, testManifest()))
	var frame bytes.Buffer
	_ = WriteFrame(&frame, []byte("body"), 4)
	line("frame", frame.Bytes())
	id, set := testHeader().ID(testRun), SetDigest([]Digest{testDigest("a"), testDigest("b")})
	line("id header", id[:])
	line("id set", set[:])
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	got := golden()
	if *update {
		ok(t, os.WriteFile(goldenPath, got, 0o644))
	}
	want, err := os.ReadFile(goldenPath)
	ok(t, err)
	gotLines, wantLines := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%d lines, %s has %d: run go test -update if the protocol was meant to change", len(gotLines), goldenPath, len(wantLines))
	}
	for i := range gotLines {
		if !bytes.Equal(gotLines[i], wantLines[i]) {
			t.Errorf("%s line %d:\n got %s\nwant %s", goldenPath, i+1, gotLines[i], wantLines[i])
		}
	}
}

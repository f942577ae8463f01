package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/joinlink"
	"atoll/node/status"
)

func TestRevoke(t *testing.T) {
	text, dir := someText(t), t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	genesis := newRun(t, text)
	owner, err := filepath.Glob(filepath.Join(filepath.Dir(genesis), ownerName))
	if err != nil || len(owner) != 1 {
		t.Fatal(owner, err)
	}
	first := startNode(t, "--genesis", genesis, a, "--listen", anyPort, "--data", text)
	code, link, stderr := typed(t, "invite", a, "--owner", owner[0], "--json")
	var made invited
	if err := json.Unmarshal([]byte(link), &made); err != nil || code != 0 {
		t.Fatalf("invite: exit code %d: %s%s", code, link, stderr)
	}
	second := startNode(t, made.Link, b, "--listen", anyPort, "--data", text)
	other := ask(t, b).Self
	meet(t, a)
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"nobody", []string{"ffff", a}, exitFailed, "no member is called ffff"},
		{"itself", []string{ask(t, a).Self, a}, exitFailed, "would revoke the node of this folder itself"},
		{"a link without an invite", []string{linkOnly(made.Link), a}, exitUsage, "there is nothing to revoke"},
		{"no owner's key", []string{other, a, "--owner", genesis}, exitFailed, genesis},
		{"who stays is not said", []string{made.Invite[:12], a}, exitUsage, "nothing is revoked yet: by this invite came "},
		{"who stays is nobody", []string{made.Link, a, "--spare", "carl"}, exitUsage, "names nobody that came by this invite"},
		{"a node keeps nobody", []string{other, a, "--spare", "all"}, exitUsage, "is one node"},
		{"no reason", []string{other, a, "--reason", ""}, exitUsage, "use 1 to 256"},
		{"a folder without a node", []string{other, dir}, exitFailed, dir},
	} {
		line := append([]string{"revoke", "--owner", owner[0]}, c.args...)
		if code, _, stderr := typed(t, line...); code != c.code || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: exit code %d: %s", c.name, code, stderr)
		}
	}
	code, stdout, stderr := typed(t, "revoke", made.Link, a, "--owner", owner[0], "--spare", "all")
	if code != 0 || !strings.Contains(stdout, "whoever would join by it counts no more") || !strings.Contains(stdout, ", 1 stays; ") {
		t.Errorf("one stays: exit code %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = typed(t, "revoke", made.Invite[:12], a, "--owner", owner[0], "--reason", "left the lab", "--spare", "none")
	if code != 0 || !strings.HasPrefix(stdout, "revoked "+made.Invite[:10]+": 1 node counts no more from round ") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if code := second.code(t); code != exitRefused || !strings.Contains(second.stderr.String(), "an owner of the run has revoked this node or its invite") {
		t.Errorf("the revoked node: exit code %d: %s", code, second.stderr)
	}
	await(t, "peers says who is revoked", func() bool {
		code, stdout, _ := typed(t, "peers", a)
		return code == 0 && strings.Count(stdout, "  revoked") == 1
	})
	if code, _, stderr := typed(t, "join", b, "--profile", "local", "--data", text); code != exitRefused || !strings.Contains(stderr, "join with it in a new folder") {
		t.Errorf("started again: exit code %d: %s", code, stderr)
	}
	unused := revokeUnused(t, a, owner[0])
	if code, _, stderr := typed(t, "join", unused, filepath.Join(dir, "c"), "--listen", anyPort, "--data", text); code != exitRefused {
		t.Errorf("by an invite that was revoked before anybody used it: exit code %d: %s", code, stderr)
	}
	first.leave(t)
	if code, stdout, stderr := typed(t, "verify", a); code != 0 {
		t.Errorf("verify: exit code %d: %s%s", code, stdout, stderr)
	}
}

// linkOnly is a link without its invite.
func linkOnly(link string) string {
	l, err := joinlink.Parse(link)
	if err != nil {
		panic(err)
	}
	l.Invite = nil
	return l.String()
}

// revokeUnused makes an invite, and revokes it before anybody came by it.
func revokeUnused(t *testing.T, dir, owner string) (link string) {
	t.Helper()
	_, link, _ = typed(t, "invite", dir, "--owner", owner)
	link = strings.TrimSpace(link)
	code, stdout, stderr := typed(t, "revoke", link, dir, "--owner", owner)
	if code != 0 || !strings.Contains(stdout, "nobody joined by it, and whoever would counts no more") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	return link
}

// Where an invite was revoked before, each who stayed then and is to go now goes by its own key: the invite's end is in the run already, and
// lets them stay.
func TestRevokedAgain(t *testing.T) {
	id := func(n byte) string { return hex.EncodeToString(bytes.Repeat([]byte{n}, 32)) }
	a := revokedAnswer{Name: id(1)}
	for n := range byte(20) {
		a.Members = append(a.Members, id(100+n))
	}
	for _, c := range []struct {
		kept  []string
		again bool
		named int
	}{{nil, false, 0}, {[]string{id(2)}, false, mostNamed}, {nil, true, 20}, {[]string{id(2)}, true, 20}} {
		a.Kept, a.Again = c.kept, c.again
		all := a.headers(0, 3, []byte("why"))
		named, end := all[:c.named], all[len(all)-1]
		for i, h := range named {
			if h.Certificate != wire.Digest(idOf(a.Members[i])) || h.Keeps() {
				t.Errorf("%+v, word %d: %+v", c, i, h)
			}
		}
		if len(all) != c.named+len(c.kept)+1 || end.Certificate != wire.Digest(idOf(a.Name)) || end.Tokens != uint64(len(c.kept)) {
			t.Errorf("%+v: %d words, the last is %+v", c, len(all), end)
		}
	}
	c := RevokeCmd{Name: "link", Spare: []string{spareNone}}
	a = revokedAnswer{Name: id(1)}
	members := []status.Member{{ID: id(5), Invite: id(1), Ended: true}, {ID: id(6), Invite: id(1), Ended: true, Revoked: true}}
	if err := c.choose(&a, status.Snapshot{}, members); err != nil || !a.Again || !slices.Equal(a.Members, []string{id(5)}) {
		t.Errorf("%+v, %v", a, err)
	}
}

// Among several ids that begin with the same digits none is taken.
func TestNameOf(t *testing.T) {
	id := func(c string) string { return strings.Repeat(c, 32) }
	members := []status.Member{{ID: id("ab"), Invite: id("12")}, {ID: id("ac"), Invite: id("12")}, {ID: id("34"), Invite: id("34")}}
	peers := []status.Peer{{ID: id("ab"), Name: "lab"}, {ID: id("ac"), Name: "Lab"}, {ID: id("34"), Name: "mac"}, {ID: id("99"), Name: "no member"}}
	status.Label(peers)
	for digits, want := range map[string]string{
		"ab": "", "AB": "", "12": "", "34": "", "a": "any of lab ab (ababababab), Lab ac (acacacacac)", "ff": "no member",
		"mac": "", "lab ab": "", "LAB": "any of lab ab (ababababab), Lab ac (acacacacac)", "no member": "no member is called",
	} {
		_, err := nameOf(peers, members, digits)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", digits, err)
		}
	}
}

package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/node/joinlink"
	"atoll/node/status"
)

// A stranger joins by a link for guests, gives the invite on, and is told that it is a guest. The owner sees that too,
// and makes it a member.
func TestGuests(t *testing.T) {
	text, dir := someText(t), t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	genesis := newRun(t, text)
	invite := func(args ...string) (made invited) {
		t.Helper()
		code, stdout, stderr := typed(t, append([]string{"invite", a, "--owner", filepath.Join(filepath.Dir(genesis), ownerName), "--json"}, args...)...)
		if err := json.Unmarshal([]byte(stdout), &made); err != nil || code != 0 {
			t.Fatalf("invite: exit code %d: %s%s", code, stdout, stderr)
		}
		return made
	}
	says := func(want string, args ...string) {
		t.Helper()
		if code, stdout, stderr := typed(t, args...); code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%v: exit code %d, no %q in %s%s", args, code, want, stdout, stderr)
		}
	}
	first := startNode(t, "--genesis", genesis, a, "--as", "lab", "--listen", anyPort, "--data", text)
	made := invite("--guests")
	second := startNode(t, made.Link, b, "--as", "mac", "--listen", anyPort, "--data", text)
	if own, err := joinlink.Parse(second.link); err != nil || !made.Guests || own.Invite != nil {
		t.Errorf("the guest's link is %s, %v", second.link, err)
	}
	id := ask(t, b).Self
	says("with `atoll invite --for "+id+"`", "status", b)
	meet(t, a)
	sees := func(dir, name string) bool {
		return slices.ContainsFunc(ask(t, dir).Peers, func(p status.Peer) bool { return !p.Self && p.Label == name })
	}
	await(t, "the owner sees the name of the guest", func() bool { return sees(a, "mac") })
	says("guests, whose work counts a little: mac\n", "peers", a)
	if sees(b, "lab") {
		t.Error("a guest is told the name of a member")
	}
	says("  "+status.ShortID(made.Invite)+"\n", "peers", a)
	says(`"guest":true`, "peers", a, "--json")
	own := invite("--for", "mac").Link // while it is there: a guest that gave nothing is no machine of the run
	second.leave(t)

	second = startNode(t, own, b, "--listen", anyPort, "--data", text)
	if s := ask(t, b); s.Self != id || s.Peers[0].Guest {
		t.Errorf("with a link for it: %+v", s.Peers[0])
	}
	await(t, "a member is told names", func() bool { return sees(b, "lab") })
	second.leave(t)
	first.leave(t)
	says("  own\n", "peers", b)
	if _, stdout, _ := typed(t, "peers", b); strings.Contains(stdout, "guest") {
		t.Errorf("members: %s", stdout)
	}
}

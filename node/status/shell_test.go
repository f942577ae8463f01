package status

import "testing"

func TestShellWords(t *testing.T) {
	for _, c := range []struct{ system, text, want string }{
		{"linux", "plain/path-1.txt", "plain/path-1.txt"},
		{"linux", "it's here", `'it'\''s here'`},
		{"linux", "", "''"},
		{"linux", `$HOME\a`, `'$HOME\a'`},
		{"windows", `.\runs\a 1`, `".\runs\a 1"`},
		{"windows", `.\runs`, `.\runs`},
	} {
		if got := shellWordOn(c.system, c.text); got != c.want {
			t.Errorf("%s: %q becomes %s, want %s", c.system, c.text, got, c.want)
		}
	}
}

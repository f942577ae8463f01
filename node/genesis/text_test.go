package genesis

import (
	"strings"
	"testing"
)

func TestTextOfTheRun(t *testing.T) {
	run, other := strings.Repeat("a", sha256Hex), strings.Repeat("b", sha256Hex)
	for _, c := range []struct {
		name         string
		data         Data
		sha256, path string
		want         []string // in the error; none = the text may be trained on
	}{
		{"the run's", Data{"book", run}, run, "/my/book", nil},
		{"the run's under another name", Data{"novel", run}, run, "/my/book", nil},
		{"another", Data{"novel", run}, other, "/my/book", []string{`the run, which trains on "novel" (sha256 aaaaaaaaaaaaaaaa)`, `: /my/book is "book" (sha256 bbbbbbbbbbbbbbbb)`, "--data PATH"}},
		{"another by default", Data{"novel", run}, other, "", []string{`"novel" (sha256 aaaaaaaaaaaaaaaa)`, `without --data this node would train on "book" (sha256 bbbbbbbbbbbbbbbb)`, "--data PATH"}},
		{"a run that names none", Data{}, other, "", nil},
		{"a run that names none, told one", Data{}, other, "/my/book", nil},
		{"own text", Data{Name: OwnText}, other, "/my/book", nil},
		{"own text that was not told", Data{Name: OwnText}, other, "", []string{"each learner of this run trains on its own text", "--data PATH"}},
	} {
		err := c.data.Check("book", c.sha256, c.path)
		if (err != nil) != (c.want != nil) {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", c.name, err, want)
			}
		}
	}
}

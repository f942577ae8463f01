package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/node/status"
	"atoll/optimizer/trainer/corpus"
)

// otherText is a corpus that no test's run is about.
func otherText(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("pack my box with five dozen liquor jugs. ", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// aboutText is a run that trains on a text.
func aboutText(t *testing.T, budget uint64, path string) Genesis {
	t.Helper()
	text, err := corpus.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	g := toyGenesis(budget)
	g.Data = Data{Name: text.Name(), SHA256: text.SHA256()}
	return g
}

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
		{"another", Data{"novel", run}, other, "/my/book", []string{`the run trains on "novel" (sha256 aaaaaaaaaaaaaaaa)`, `but /my/book is "book" (sha256 bbbbbbbbbbbbbbbb)`, "--data PATH"}},
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

// A learner with another text ends before it trains or fetches the model; with the run's it goes on in the same folder, and
// after a restart it need not be told again.
func TestJoinerTrainsOnTheRunsText(t *testing.T) {
	t.Parallel()
	text, dir := toyText(t), t.TempDir()
	first := launch(t, Config{Genesis: aboutText(t, 1<<40, text).Encode(), Data: text, Pace: slowPace})
	link := first.link()
	for path, want := range map[string]string{"": "without --data this node would train on", otherText(t): `but /`} {
		m := launch(t, Config{Dir: dir, Link: link, Data: path})
		<-m.ended
		if m.err == nil || !strings.Contains(m.err.Error(), `the run trains on "text.txt"`) || !strings.Contains(m.err.Error(), want) {
			t.Errorf("--data %q: %v", path, m.err)
		}
		if m.last.Step != 0 || m.last.Net.ReceivedBytes > 1<<14 {
			t.Errorf("--data %q: %d steps, %d bytes received", path, m.last.Step, m.last.Net.ReceivedBytes)
		}
	}
	launch(t, Config{Dir: dir, Link: link, Data: text, Pace: slowPace}).joinAndLeave()
	if path, err := FolderText(dir); err != nil || path != text {
		t.Errorf("the folder remembers %q, %v", path, err)
	}
	launch(t, Config{Dir: dir, Pace: slowPace}).joinAndLeave()
	first.leave()
}

func (m *member) joinAndLeave() {
	m.t.Helper()
	m.until("a step", func(s status.Snapshot) bool { return s.Step > 0 })
	m.leave()
}

// hasEvent looks for news of a kind.
func hasEvent(kind, text string) func(status.Snapshot) bool {
	return func(s status.Snapshot) bool {
		for _, e := range s.Events {
			if e.Kind == kind && strings.Contains(e.Text, text) {
				return true
			}
		}
		return false
	}
}

// A run that names no text takes any, and says so. An observer who was told of no text measures none.
func TestTextsThatAreOnlyMentioned(t *testing.T) {
	t.Parallel()
	text := toyText(t)
	for _, cfg := range []Config{
		{Genesis: toyGenesis(1 << 40).Encode(), Data: text, Pace: slowPace},
		{Genesis: toyGenesis(1 << 40).Encode(), Pace: slowPace},
	} {
		m := launch(t, cfg)
		m.until("the text", hasEvent("text", "the run does not say which text to train on"))
		m.leave()
	}
	m := launch(t, Config{Genesis: aboutText(t, 1<<40, text).Encode(), Observe: true, EvalBytes: 100})
	m.until("no evaluation", hasEvent("no evaluation", "without --data"))
	m.leave()
	told := Config{Genesis: aboutText(t, 1<<40, text).Encode(), Observe: true, EvalBytes: 100, Data: otherText(t)}
	if err := fails(t, told); !strings.Contains(err.Error(), "the run trains on") {
		t.Errorf("an observer with another text: %v", err)
	}
}

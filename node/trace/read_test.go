package trace

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/wire"
)

// What is written is what is read, whoever writes it.
func TestLinesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.Custom(drawLine)).Draw(t, "lines")
		closes := []Close{{Node: wire.PeerID{1}, Fragment: 2, Round: 3, At: 4, Why: "grace over", For: wire.PeerID{5}, WaitedMs: 6}}
		var b bytes.Buffer
		if err := Write(&b, Trace{Lines: lines, Closes: closes}); err != nil {
			t.Fatal(err)
		}
		var got Trace
		if err := got.Read(&b); err != nil {
			t.Fatal(err)
		}
		if len(lines)+len(got.Lines) > 0 && !reflect.DeepEqual(got.Lines, lines) {
			t.Errorf("read %+v, wrote %+v", got.Lines, lines)
		}
		if !reflect.DeepEqual(got.Closes, closes) {
			t.Errorf("read %+v, wrote %+v", got.Closes, closes)
		}
	})
}

func drawLine(t *rapid.T) Line {
	peer := func(name string) wire.PeerID { return wire.PeerID{rapid.Byte().Draw(t, name)} }
	ms := func(name string) int64 { return rapid.Int64Range(0, 1<<45).Draw(t, name) }
	l := Line{Delta: wire.Digest{rapid.Byte().Draw(t, "delta")}, Node: peer("node"), What: What{Author: peer("author"), Round: 3}}
	l.Drafted, l.Heard, l.Adopted = ms("drafted"), ms("heard"), ms("adopted")
	l.Gave, l.Late, l.End = peer("gave"), rapid.Bool().Draw(t, "late"), rapid.SampledFrom([]End{Open, Adopted, Returned}).Draw(t, "end")
	if rapid.Bool().Draw(t, "fails") {
		l.Failures = []Failure{{Of: peer("of"), Asked: ms("asked"), Why: rapid.String().Draw(t, "why")}}
	}
	return l
}

func TestMerge(t *testing.T) {
	a, b := wire.PeerID{1}, wire.PeerID{2}
	first, second := wire.Digest{9}, wire.Digest{8}
	line := func(d wire.Digest, node wire.PeerID, times Times, how How) Line {
		return Line{Delta: d, Node: node, What: What{Author: a}, Times: times, How: how}
	}
	all := Trace{
		Lines: []Line{
			line(second, a, Times{Drafted: 50, Announced: 51}, How{End: Adopted}),
			line(first, b, Times{Heard: 20, FirstByte: 30, LastByte: 31}, How{Gave: a, End: Open}),
			line(first, b, Times{Heard: 20, FirstByte: 30, LastByte: 31}, How{Gave: a, End: Adopted}),
			line(first, a, Times{Drafted: 10, Announced: 11}, How{End: Returned}),
		},
		Served: []Served{
			{Delta: first, Node: a, To: b, Reached: 22, Begun: 23}, // failed on its way
			{Delta: first, Node: a, To: b, Reached: 24, Begun: 25},
			{Delta: first, Node: a, To: b, Reached: 40, Begun: 41}, // once more
			{Delta: first, Node: b, To: b, Reached: 28, Begun: 29}, // another giver
		},
		Closes: []Close{
			{Node: b, Round: 1, At: 32, Why: "grace over"},
			{Node: a, Round: 1, At: 33, Why: "complete"},
			{Node: b, Round: 1, At: 60, Why: "closed elsewhere"}, // after it took a snapshot of an older round
		},
	}
	want := Trace{Closes: []Close{all.Closes[1], all.Closes[2]}, Lines: []Line{
		line(first, a, Times{Drafted: 10, Announced: 11}, How{End: Returned}),
		line(first, b, Times{Drafted: 10, Announced: 11, Heard: 20, Reached: 24, Begun: 25, FirstByte: 30, LastByte: 31}, How{Gave: a, End: Adopted}),
		line(second, a, Times{Drafted: 50, Announced: 51}, How{End: Adopted}),
	}}
	got := all.Merge()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("merged %+v,\n want %+v", got, want)
	}
	if again := got.Merge(); !reflect.DeepEqual(again, want) {
		t.Errorf("merged once more %+v", again)
	}
}

// A process that is killed may leave half a line. The next one goes on behind the last
// whole one.
func TestAppendDropsHalfALine(t *testing.T) {
	for was, want := range map[string]string{"": "", "{}\n": "{}\n", "{}\n{\"de": "{}\n", "{\"de": ""} {
		path := filepath.Join(t.TempDir(), File)
		if err := os.WriteFile(path, []byte(was), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Append(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("next\n"); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if b, err := os.ReadFile(path); err != nil || string(b) != want+"next\n" {
			t.Errorf("%q became %q, %v", was, b, err)
		}
	}
}

func TestReadPath(t *testing.T) {
	dir := t.TempDir()
	var all Trace
	if err := all.ReadPath(dir); err == nil || !strings.Contains(err.Error(), "--trace") {
		t.Errorf("an empty folder: %v", err)
	}
	if err := all.ReadPath(filepath.Join(dir, "absent")); err == nil {
		t.Error("an absent folder has a trace")
	}
	for i, node := range []string{"node0", "node1"} {
		if err := os.Mkdir(filepath.Join(dir, node), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(filepath.Join(dir, node, File), Trace{Lines: []Line{{Node: wire.PeerID{byte(i)}, How: How{End: Open}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := all.ReadPath(dir); err != nil || len(all.Lines) != 2 {
		t.Errorf("%d lines, %v", len(all.Lines), err)
	}
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("{}\nnothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := all.ReadPath(bad); err == nil || !strings.Contains(err.Error(), "bad: line 2") {
		t.Errorf("a bad file: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"delta":"` + strings.Repeat("0a", 32) + `","node":"` + strings.Repeat("01", 32) + `","author":"` + strings.Repeat("02", 32) + `","round":3,"drafted":5,"adopted":9,"end":"adopted"}` + "\n",
		`{"served":{"delta":"` + strings.Repeat("0a", 32) + `","reached":4}}` + "\n", `{"close":{"round":2,"why":"complete"}}` + "\n", "{}\n", "null\n", `{"drafted":1e3}` + "\n", `{"later":1}` + "\n{",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var all Trace
		if all.Read(bytes.NewReader(b)) != nil {
			return
		}
		merged := all.Merge()
		if len(merged.Lines) > len(all.Lines) || len(merged.Closes) > len(all.Closes) {
			t.Fatalf("%d lines became %d, %d rounds %d", len(all.Lines), len(merged.Lines), len(all.Closes), len(merged.Closes))
		}
		if _, err := json.Marshal(Sum(merged)); err != nil {
			t.Fatal(err)
		}
	})
}

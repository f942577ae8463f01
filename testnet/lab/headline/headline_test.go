package headline

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/trace"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor/llama"
	"atoll/testnet"
	"atoll/testnet/lab/trials"
)

// top is the top of the repository, seen from here.
const top = "../../.."

// The table of RESULTS.md is what the stored results give.
func TestTheTableIsWhatIsStored(t *testing.T) {
	all, err := stored(filepath.Join(top, resultsDir))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(top, resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	want, err := withTable(text, table(all))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("the table of %s differs from the stored results; run: go run -C testnet/lab . headline --table --write", resultsFile)
	}
	lines, err := os.ReadFile(filepath.Join(top, headlinesFile))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := headlines(all); err != nil || string(lines) != want {
		t.Errorf("%s is not what the stored results say (%v); run: go run -C testnet/lab . headline --table --write", headlinesFile, err)
	}
}

// The pictures are what the stored results and the simulator give.
func TestThePicturesAreWhatIsStored(t *testing.T) {
	all, err := stored(filepath.Join(top, resultsDir))
	if err != nil {
		t.Fatal(err)
	}
	goodput, err := goodputPlot()
	if err != nil {
		t.Fatal(err)
	}
	pictures := map[string]string{goodputFile: goodput.SVG()}
	if speed := speedPlot(all); len(speed.Series) > 0 {
		pictures[speedFile] = speed.SVG()
	}
	for name, want := range pictures {
		got, err := os.ReadFile(filepath.Join(top, resultsDir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s is not what is stored (%v); run: go run -C testnet/lab . headline --plots", name, err)
		}
	}
}

func TestWithTable(t *testing.T) {
	text := "before\n" + tableBegin + "\nold\n" + tableEnd + "\nafter\n"
	once, err := withTable([]byte(text), "| new |\n")
	if err != nil || string(once) != "before\n"+tableBegin+"\n\n| new |\n\n"+tableEnd+"\nafter\n" {
		t.Errorf("%q, %v", once, err)
	}
	if again, err := withTable(once, "| new |\n"); err != nil || !bytes.Equal(once, again) {
		t.Errorf("%q, %v", again, err)
	}
	if _, err := withTable([]byte("nothing"), "new"); err == nil || !strings.Contains(err.Error(), "has no place for the table") {
		t.Errorf("error %v", err)
	}
}

// Each sentence is of a line that its row has, and says whether less came out than was asked.
func TestSentences(t *testing.T) {
	for _, s := range sentences {
		if found, err := rowsNamed([]string{s.row}); err != nil || len(found) != 1 {
			t.Errorf("%+v: %v", s, err)
		}
		r := Result{Row: s.row, Quick: true, Lines: summarize([][]Line{{over(s.what, "", 3, 6, "x", trials.AtLeast(0.9))}})}
		got, have := s.of([]Result{{Row: "other"}, r})
		if !have || !strings.HasSuffix(got, ". (short form; asked: at least 0.9)") || strings.Trim(got, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" ||
			strings.Contains(got, "VALUE") || strings.Contains(got, "ATOLL") || strings.Contains(got, "SHARE") {
			t.Errorf("%q", got)
		}
	}
	if _, have := sentences[0].of(nil); have {
		t.Error("a row that was not played has a sentence")
	}
	if got, _ := (sentence{"kept", "a", "ATOLL, BESIDE, VALUE, SHARE"}).of([]Result{{Row: "kept", Lines: summarize([][]Line{{over("a", "", 3, 6, "x", trials.Shown)}})}}); got != "3, 6, 0.5, 50 %" {
		t.Errorf("%q", got)
	}
}

func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"": "name a row to play", "walk": `there is no row "walk"; use thin, kept`, "--walk": "flag provided but not defined", "--runs -1 thin": "--runs is -1",
		"--scale NaN thin": "--scale is NaN", "--pace 1us thin": "--pace is 1µs", "--table thin": `"thin" is one`, "--write thin": "--write goes with --table",
		"--table --plots": "two commands", "--more --seed 7 thin": "--seed does not go with --more", "--more --table": "--more adds turns", "--more": "name a row to play",
	} {
		err := Main(t.Context(), strings.Fields(line), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, errUsage) {
			t.Errorf("%q: error %v, want %q", line, err, want)
		}
	}
	if err := Main(t.Context(), []string{"--help"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error %v", err)
	}
	for _, name := range rowNames() {
		if !strings.Contains(rowList(), "  "+name+" ") {
			t.Errorf("the help text does not list %s", name)
		}
	}
}

// Sizes that stand here as numbers are those of the models.
func TestSizes(t *testing.T) {
	if n := llama.Small.Params(); n != smallParams {
		t.Errorf("small has %d parameters, not %d", n, smallParams)
	}
	g, err := genesis.Default("small", 1, 1, 0)
	if err != nil || g.Model.Context != smallStep || g.OuterParams().Mu == 0 {
		t.Errorf("a row of small has %d tokens, its outer momentum is %v (%v)", g.Model.Context, g.OuterParams().Mu, err)
	}
	if g, err = genesis.Default("tiny", 1, 1, 0); err != nil || g.Batch*g.Model.Context != tinyStep {
		t.Errorf("a step of tiny has %d tokens (%v)", g.Batch*g.Model.Context, err)
	}
	c, err := genesis.ModelConfig(filepath.Join(top, standinModel))
	if err != nil || c.Params() != standinParams || c.Context != standinTokens {
		t.Errorf("the stand-in has %d parameters and %d tokens a row (%v)", c.Params(), c.Context, err)
	}
}

// All worlds of all rows are runs that a testnet accepts, in both forms.
func TestWorldsAreAccepted(t *testing.T) {
	for _, quick := range []bool{false, true} {
		s := Settings{Quick: quick, Scale: 1, Runs: 1}
		for _, r := range rows {
			worlds := r.Worlds(s, 5)
			if len(worlds) == 0 || r.Takes == "" || r.TakesQuick == "" {
				t.Errorf("row %s has %d worlds, takes %q and %q", r.Name, len(worlds), r.Takes, r.TakesQuick)
			}
			names := map[string]bool{}
			for _, w := range worlds {
				if names[w.Name] {
					t.Errorf("row %s has two worlds called %s", r.Name, w.Name)
				}
				names[w.Name] = true
				if w.Command[0] == "atoll" {
					accepted(t, r.Name, w)
				}
			}
		}
	}
}

// accepted reads the flags of a world as the command does, as far as they are about chaos and links.
func accepted(t *testing.T, row string, w World) {
	t.Helper()
	var c testnet.Config
	for i := 2; i+1 < len(w.Command); i++ {
		switch w.Command[i] {
		case "--chaos":
			c.Chaos = w.Command[i+1]
		case "--link":
			c.Link = append(c.Link, w.Command[i+1])
		case "--baseline":
			c.Baseline = w.Command[i+1]
		case "--codec":
			c.Codec = w.Command[i+1]
		case "--optimizer":
			c.Optimizer = w.Command[i+1]
		}
	}
	if c.Nodes = 8; slices.Contains(w.Command, "--trace") {
		c.Trace = true
	}
	if err := c.Validate(); err != nil {
		t.Errorf("row %s, %s: %v", row, w.text(), err)
	}
}

// Facts: a ring all-reduce of the model small takes 13.1 s over 20 Mbit/s and 40 ms with four nodes, 2.81 s over 100.
func TestDPRate(t *testing.T) {
	for mbit, seconds := range map[float64]float64{20: 13.1, 100: 2.81} {
		if got := 4 * smallStep / dpRate(4, smallParams, smallStep, mbit, delay); math.Abs(got/seconds-1) > 0.005 {
			t.Errorf("a step of dp over %v Mbit/s takes %v s, not %v", mbit, got, seconds)
		}
	}
	if dp, diloco := standinRate(1, 100), standinRate(24, 100); dp >= diloco || diloco >= standinNodes*standinTokens/standinStep.Seconds() {
		t.Errorf("dp %v, diloco %v", dp, diloco)
	}
}

func TestSummarize(t *testing.T) {
	turns := [][]Line{
		{over("a", "tokens/s", 10, 1, "dp", trials.AtLeast(8)), alone("b", "s", 3, trials.AtMost(2)), alone("c", "", none, trials.AtLeast(1))},
		{over("a", "tokens/s", 30, 2, "dp", trials.AtLeast(8))},
		{over("a", "tokens/s", 21, 3, "dp", trials.AtLeast(8)), under("d", "s", 2, 8, "dp", trials.Shown)},
	}
	all := summarize(turns)
	if len(all) != 4 {
		t.Fatal(all)
	}
	a := all[0]
	want := func(median, least, most float64, turns ...float64) *Spread {
		return &Spread{median, least, most, turns}
	}
	if a.Turns != 3 || !reflect.DeepEqual([]*Spread{a.Atoll, a.Beside, a.Value}, []*Spread{want(21, 10, 30, 10, 30, 21), want(2, 1, 3, 1, 2, 3), want(10, 7, 15, 10, 15, 7)}) || !*a.Met {
		t.Errorf("%+v", a)
	}
	if b := all[1]; *b.Met || b.Beside != nil || b.asked() != "at most 2: NOT MET" || b.ratio() != "" {
		t.Errorf("%+v", b)
	}
	if got := trials.AtMost(mostWorse).Text(exact); got != "at most 1.015" {
		t.Errorf("%q", got)
	}
	if c := all[2]; *c.Met || c.Value != nil {
		t.Errorf("what was not measured is met: %+v", c)
	}
	if d := all[3]; d.Met != nil || d.Value.Median != 4 || d.row("") != "| d, s | 2 | dp 8 | 4 |  |\n" {
		t.Errorf("%q", d.row(""))
	}
	if got := a.row("**x**: "); got != "| **x**: a, tokens/s | 21 (10 to 30) | dp 2 | 10 (7 to 15) | at least 8 |\n" {
		t.Errorf("%q", got)
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.98765: "0.988", 12.34: "12.3", 123.4: "123", 999.9: "1000", 12345.6: "12346", 0.00012345: "0.000123", -2.5: "-2.5"} {
		if got := number(x); got != want {
			t.Errorf("%v is written %q, want %q", x, got, want)
		}
	}
}

// Every second turn has the worlds the other way round, and another seed.
func TestInTurn(t *testing.T) {
	s := Settings{Scale: 1, Runs: 2, Seed: 5}
	names := func(turn int) (names []string) {
		for _, w := range s.inTurn(keptRow, turn) {
			names = append(names, w.Name)
		}
		return names
	}
	first, second := names(1), names(2)
	slices.Reverse(second)
	if !slices.Equal(first, second) || len(first) != 3 {
		t.Errorf("%q, then %q", first, second)
	}
	if a, b := s.inTurn(keptRow, 1)[0], s.inTurn(keptRow, 3)[0]; a.Name != b.Name || a.text() == b.text() {
		t.Errorf("%s, and in another turn %s", a.text(), b.text())
	}
	s.Only = []string{"100"}
	if got := names(1); !slices.Equal(got, []string{"100"}) {
		t.Errorf("%q", got)
	}
}

// Worlds of a row have the pace of the first that was played, unless the row or the command line has one.
func TestPaceOf(t *testing.T) {
	played := []Trial{{}, {Outcome: Outcome{Report: testnet.Report{Calibration: testnet.Calibration{PaceMs: 12.6}}}}}
	if got := (Settings{}).paceOf(thinRow, played); got != 13*time.Millisecond {
		t.Errorf("%v", got)
	}
	if got := (Settings{}).paceOf(killsRow, played); got != killPace {
		t.Errorf("%v", got)
	}
	if got := (Settings{Pace: time.Second}).paceOf(killsRow, played); got != time.Second {
		t.Errorf("%v", got)
	}
}

// What was played of the same source is not played again.
func TestTrialAnswers(t *testing.T) {
	w := keptRow.Worlds(Settings{Scale: 1}, 5)[0]
	played := Trial{Row: "kept", World: w.Name, Turn: 1, Command: w.Command, Commit: "abc", Pace: "0s"}
	changed := played
	changed.Commit = "abc+"
	for name, got := range map[string]bool{
		"":                        !played.is(keptRow, w, 1, "abc", 0),
		"another turn":            played.is(keptRow, w, 2, "abc", 0),
		"another commit":          played.is(keptRow, w, 1, "abd", 0),
		"another pace":            played.is(keptRow, w, 1, "abc", time.Second),
		"source with changes":     changed.is(keptRow, w, 1, "abc+", 0),
		"another row":             played.is(thinRow, w, 1, "abc", 0),
		"another command, longer": played.is(keptRow, keptRow.Worlds(Settings{Scale: 2}, 5)[0], 1, "abc", 0),
	} {
		if got {
			t.Errorf("wrong for %q", name)
		}
	}
}

func TestSteady(t *testing.T) {
	o := Outcome{Report: testnet.Report{
		Tokens:  testnet.Tokens{TokensFolded: 1000},
		Outcome: testnet.Outcome{WallS: 30, Progress: []testnet.Point{{AtS: 10, Tokens: 0}, {AtS: 20, Tokens: 1000}}},
	}}
	if got := o.steady(); math.Abs(got-100) > 1e-9 {
		t.Errorf("%v tokens/s", got)
	}
	p := &Peer{Tokens: 1000, WallS: 30, Progress: [][2]float64{{10, 250}, {16.5, 900}, {29, 1000}}}
	if got := p.steady(); math.Abs(got-100) > 1e-9 {
		t.Errorf("%v tokens/s of a peer", got)
	}
}

// The times of a kill come from what the nodes wrote.
func TestRecoveryTimes(t *testing.T) {
	at := func(s float64) time.Time {
		return time.UnixMilli(1_000_000).Add(time.Duration(s * float64(time.Second)))
	}
	dead, alive := "aa"+strings.Repeat("0", 62), "bb"+strings.Repeat("0", 62)
	nodes := []testnet.NodeReport{{Name: "node0", ID: alive}, {Name: "node1", ID: dead}}
	said := map[string][]status.Event{
		"node0": {{At: at(1), Kind: "silent", Peer: "aa00000000"}, {At: at(14), Kind: "silent", Peer: "bb00000000"}, {At: at(15), Kind: "silent", Peer: "aa00000000"}},
		"node1": {{At: at(12), Kind: "silent", Peer: "aa00000000"}},
	}
	if got := firstEvent(said, nodes, nodes[1], at(10)); !got.Equal(at(15)) {
		t.Errorf("detected at %v", got)
	}
	line := func(author byte, round uint32, closed float64) (l trace.Line) {
		l.Node[0], l.Author[0], l.Round, l.Closed = 0xbb, author, round, at(closed).UnixMilli()
		return l
	}
	lines := []trace.Line{line(0xbb, 1, 9), line(0xbb, 2, 11), line(0xaa, 2, 11), line(0xbb, 3, 13), line(0xbb, 4, 12.5)}
	if got := firstRound(lines, dead, at(10)); !got.Equal(at(12.5)) {
		t.Errorf("excluded at %v", got)
	}
	if got := firstRound(lines[:3], dead, at(10)); !got.IsZero() {
		t.Errorf("excluded at %v in no round", got)
	}
}

// What was killed leaves half a line.
func TestReadLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(path, []byte(`{"kind":"a"}`+"\n\n"+`{"kind":"b`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readEvents(path)
	if err != nil || len(got) != 1 || got[0].Kind != "a" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := readEvents(path + "x"); err != nil || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestStored(t *testing.T) {
	dir := t.TempDir()
	r := Result{Row: "kept", Part: Part{Turns: 2}, Lines: summarize([][]Line{{over("a", "", 1, 2, "x", trials.Shown)}}), Failed: []string{"turn 1, 100: it broke"}}
	for _, r := range []Result{r, {Row: "thin"}} {
		if err := r.save(dir); err != nil {
			t.Fatal(err)
		}
	}
	all, err := stored(dir)
	if err != nil || len(all) != 2 || all[0].Row != "thin" || all[1].Lines[0].Atoll.Median != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if text := table(all); !strings.Contains(text, "Failed in row kept, turn 1, 100: it broke") || all[1].met() || all[0].met() {
		t.Errorf("%s", text)
	}
	if err := os.WriteFile(filepath.Join(dir, "thin.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := stored(dir); err == nil || !strings.Contains(err.Error(), "row thin") {
		t.Errorf("error %v", err)
	}
}

// Learners of peers train the model, the text and the rates of a run of atoll.
func TestJob(t *testing.T) {
	dir := t.TempDir()
	g, err := writeJob(dir, mustText(t), "2000000", 7)
	if err != nil || g.Inner.Optimizer != "adamw" || g.Outer.H != 24 {
		t.Fatalf("%+v, %v", g.Inner, err)
	}
	first, err := os.ReadFile(filepath.Join(dir, "init.f32"))
	slab := llama.NewParams(g.Model)
	if err != nil || readValues(first, slab) != nil {
		t.Fatal(err)
	}
	want := llama.NewParams(g.Model)
	if llama.Init(g.Model, want, 7); !slices.Equal(slab.Data, want.Data) {
		t.Error("the first parameters are others")
	}
	if err := readValues(first[4:], slab); err == nil {
		t.Error("a model of another length was read")
	}
}

// The scripts of peers are what Python reads; what they import need not be here.
func TestScriptsCompile(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	scripts, err := filepath.Glob("peers/*.py")
	if err != nil || len(scripts) < 4 {
		t.Fatal(scripts, err)
	}
	for _, name := range scripts {
		out, err := exec.Command(python, "-c", "import sys; compile(open(sys.argv[1], encoding='utf-8').read(), sys.argv[1], 'exec')", name).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

func mustText(t *testing.T) *corpus.Corpus {
	t.Helper()
	text, err := corpus.Open(corpus.Prose)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Lines that sentences name are lines that rows make.
func TestSentencesNameLines(t *testing.T) {
	seconds := 1.0
	full := Outcome{
		Report: testnet.Report{Outcome: testnet.Outcome{ValBPB: &seconds}, Traffic: testnet.Traffic{GoodputUp: &seconds}, Faults: testnet.Faults{JoinS: []float64{1}}},
		Times:  map[string][]float64{folded: {1}}, Peer: &Peer{},
	}
	for _, s := range sentences {
		found, err := rowsNamed([]string{s.row})
		if err != nil {
			t.Fatal(err)
		}
		outcomes := map[string]Outcome{}
		for _, w := range found[0].Worlds(Settings{Scale: 1}, 5) {
			outcomes[w.Name] = full
		}
		if !slices.ContainsFunc(found[0].Lines(outcomes), func(l Line) bool { return l.What == s.what }) {
			t.Errorf("row %s has no line %q", s.row, s.what)
		}
	}
}

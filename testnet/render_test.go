package testnet

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
	"atoll/testnet/fault"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it):\n%s\nwant:\n%s", name, got, want)
	}
}

// someView is a run of a joiner, a learner and a node that was killed.
func someView() view {
	learner := status.Snapshot{
		Identity: status.Identity{State: "training"},
		Progress: status.Progress{Step: 210, TokensTrained: 107520, TrainLoss: 2.3064},
		Peers:    []status.Peer{{Self: true, TokensPerS: 4870, Hardware: "AMD EPYC 7B13 64-Core Processor (2 threads)"}},
	}
	joiner := status.Snapshot{Identity: status.Identity{State: "joining", Stage: "snapshot: 3 of 7 chunks (43 %)"}, Peers: learner.Peers[:0]}
	return view{
		elapsed: 12400 * time.Millisecond, model: "tiny", budget: 3_000_000, folded: 310_272, perS: 17312, average: 15100,
		left: 155 * time.Second, val: 3.2123, valAt: 301_000, curve: []float64{8.04, 4.8, 4.1, 3.6, 3.2123},
		rows: []row{
			{name: "node0", state: "training", seen: true, s: learner, share: 0.6512, closed: 8, up: 102_400, down: 98_000},
			{name: "node1", state: "killed", seen: true, s: learner, share: 0.3488, closed: 8, up: 1_200_000, down: 12},
			{name: "node2", state: "joining", seen: true, s: joiner},
			{name: "node3", state: "starting"},
		},
	}
}

func TestRenderBlock(t *testing.T) { golden(t, "block.txt", drawn(someView().block(80))) }

func drawn(block []string) string { return strings.Join(block, "\n") + "\n" }

func TestBlockFitsTheTerminal(t *testing.T) {
	for _, width := range []int{20, 60, 80, 81, 200} {
		for _, line := range someView().block(width) {
			if n := len([]rune(line)); n >= width {
				t.Errorf("%d characters in %d columns: %s", n, width, line)
			}
		}
	}
}

func TestQualityOfUntrainedModelIsNotShown(t *testing.T) {
	v := someView()
	v.valAt = 0
	if text := drawn(v.block(80)) + v.line(); strings.Contains(text, "bits per byte") || strings.Contains(text, "model ") {
		t.Error(text)
	}
}

func TestRenderLine(t *testing.T) { golden(t, "line.txt", someView().line()+"\n") }

func TestRenderFirstBlock(t *testing.T) {
	v := view{model: "tiny", budget: 1000, rows: []row{{name: "node0", state: "starting"}}}
	golden(t, "first.txt", drawn(v.block(80))+v.line()+"\n")
}

func TestRenderReport(t *testing.T) {
	var b bytes.Buffer
	if err := someReport().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", b.String())
}

func TestRenderReportWithoutFigures(t *testing.T) {
	var b bytes.Buffer
	r := Report{Setup: Setup{Model: "tiny", Optimizer: "muon"}, NodesReport: []NodeReport{{Name: "guest 0102030405"}}}
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "report_empty.txt", b.String())
}

func TestSparkline(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{[]float64{1}, "▁"},
		{[]float64{1, 1, 1}, "▁▁▁"},
		{[]float64{8, 1}, "█▁"},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8}, "▁▂▃▄▅▆▇█"},
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, "▁▂▃▄▅▆▇█"},
	} {
		if got := sparkline(c.values, 8); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
}

func TestLossCurveKeepsItsShape(t *testing.T) {
	var c lossCurve
	for i := range 10 * curvePoints {
		c.add(uint64(i), float64(i)+1)
		c.add(uint64(i), 1e9) // known already
	}
	c.add(1<<40, 0) // not measured
	if len(c.Value) > curvePoints || len(c.Value) < curvePoints/2 || len(c.Value) != len(c.At) {
		t.Fatalf("%d points", len(c.Value))
	}
	if c.Value[0] != 1 || c.Value[len(c.Value)-1] != 10*curvePoints {
		t.Errorf("from %v to %v", c.Value[0], c.Value[len(c.Value)-1])
	}
	for i, b := range c.Value {
		if b != float64(c.At[i])+1 {
			t.Errorf("point %d is %v at %d", i, b, c.At[i])
		}
	}
}

func TestScreenOfALog(t *testing.T) {
	var b bytes.Buffer
	s := newScreen(&b, nil)
	v := someView()
	s.say("hello %d", 1)
	s.show(v)
	v.elapsed += lineEvery - 1
	s.show(v) // too soon
	v.elapsed++
	s.show(v)
	if lines := strings.Count(b.String(), "\n"); lines != 3 || strings.Contains(b.String(), "\x1b") {
		t.Errorf("%d lines:\n%q", lines, b.String())
	}
}

// frame is a block as a terminal gets it.
func frame(block []string) string {
	return strings.Join(block, clearLine+"\n") + clearLine + "\n" + clearEnd
}

func TestScreenOfATerminal(t *testing.T) {
	var b bytes.Buffer
	columns := 80
	s := newScreen(&b, func() (int, int) { return columns, 24 })
	v := someView()
	s.show(v)
	s.show(v) // too soon
	s.say("node4 joins")
	s.show(v)
	v.elapsed += redrawEvery
	s.show(v)
	up := "\x1b[" + fault.Number(float64(len(v.block(80)))) + "F"
	first := frame(someView().block(80))
	want := first + up + clearEnd + "node4 joins\n" + first + up + frame(v.block(80))
	if b.String() != want {
		t.Errorf("drawn:\n%q\nwant:\n%q", b.String(), want)
	}

	b.Reset()
	columns = 60
	v.elapsed += redrawEvery
	s.show(v)
	s.clear()
	s.clear() // nothing is left to clear
	if want := clearAll + frame(v.block(60)) + up + clearEnd; b.String() != want {
		t.Errorf("after a resize:\n%q\nwant:\n%q", b.String(), want)
	}
}

func TestScreenOfALowTerminal(t *testing.T) {
	var b bytes.Buffer
	s := newScreen(&b, func() (int, int) { return 80, 6 })
	s.show(someView())
	if n := strings.Count(b.String(), "\n"); n != 5 || !strings.Contains(b.String(), "4 more lines") {
		t.Errorf("%d lines: %q", n, b.String())
	}
}

func TestReportFitsEightyColumns(t *testing.T) {
	var b bytes.Buffer
	if err := someReport().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(b.String(), "\n") {
		if n := len([]rune(line)); n > reportWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestCounts(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 9999: "9999", 62_000: "62.0k", 3e6: "3.00M", 2.5e9: "2.50G"} {
		if got := count(x); got != want {
			t.Errorf("count(%v) = %s, want %s", x, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0 B", 1536: "1.5 KiB", 2 << 20: "2.0 MiB", 3 << 40: "3.0 TiB"} {
		if got := status.Bytes(x); got != want {
			t.Errorf("status.Bytes(%v) = %s, want %s", x, got, want)
		}
	}
}

package external

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/optimizer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
)

// The test binary is the learner too: started with this variable, it behaves as it says.
const envFake = "ATOLL_TEST_FAKE"

// envWord is a file that a fake waits for before it starts.
const envWord = "ATOLL_TEST_WORD"

func TestMain(m *testing.M) {
	if how := os.Getenv(envFake); how != "" {
		os.Exit(fake(how))
	}
	os.Exit(m.Run())
}

// fakeRun is what a fake learner reads of messages.
type fakeRun struct {
	run
	Pieces [][2]int
	Number int64
	LR     float64
	Starts []uint64
	Path   string
}

// fake is a learner whose step adds the learning rate to every value.
func fake(how string) int {
	if how == "parent" {
		return parent()
	}
	if how == "mute" {
		fmt.Fprintln(os.Stderr, "no module named torch")
		return 2
	}
	for how == "waits for a word" {
		if _, err := os.Stat(os.Getenv(envWord)); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	conn, err := net.Dial("tcp", os.Getenv(EnvAddress))
	if err != nil {
		return 4
	}
	hello := map[string]any{"type": "hello", "protocol": 1, "token": os.Getenv(EnvToken), "name": "fake", "version": "1", "precision": "bf16", "evaluates": how != "cannot evaluate",
		"devices": []Device{{"cuda", "a card", 1, 1 << 30}}}
	if how == "old" {
		hello["protocol"] = 0
	}
	WriteFrame(conn, hello)
	f := &faker{conn: conn, how: how}
	for {
		var m fakeRun
		if !f.read(&m) {
			return 0
		}
		if code, done := f.answers(m); done {
			return code
		}
	}
}

type faker struct {
	conn   net.Conn
	how    string
	slab   *os.File
	begin  int64
	values []byte
	taken  int
}

func (f *faker) read(m *fakeRun) bool {
	var head [4]byte
	if _, err := io.ReadFull(f.conn, head[:]); err != nil {
		return false
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(f.conn, b); err != nil {
		return false
	}
	return json.Unmarshal(b, m) == nil
}

func (f *faker) answers(m fakeRun) (code int, done bool) {
	say := func(m map[string]any) { WriteFrame(f.conn, m) }
	switch m.Type {
	case "run":
		f.begin, f.values = m.Begin, make([]byte, 4*m.Values)
		f.slab, _ = os.OpenFile(m.Slab, os.O_RDWR, 0)
		layout := m.Layout
		if name := unknown(m.Tensors); name != "" && f.how != "takes any layout" {
			switch f.how {
			case "blames another tensor":
				name = "b"
			case "ends without a word":
				return 7, true
			}
			say(map[string]any{"type": "error", "error": "tensor " + name + " is none of this model"})
			return 0, false
		}
		switch f.how {
		case "other layout":
			layout = strings.Repeat("0", 64)
		case "refuses":
			say(map[string]any{"type": "error", "error": "cuda: no such device", "remedy": "use --device cpu"})
			return 1, true
		case "refuses resume", "refuses a state and stays":
			if m.Resume != "" {
				say(map[string]any{"type": "error", "error": "the state does not fit", "remedy": "start without it"})
				return 1, f.how == "refuses resume"
			}
		}
		say(map[string]any{"type": "ready", "layout": layout, "tokens_per_second": 1234.5, "memory_bytes": 77})
	case "load", "flush":
		for _, p := range m.Pieces {
			part := f.values[4*p[0] : 4*(p[0]+p[1])]
			if m.Type == "load" {
				f.slab.ReadAt(part, f.begin+4*int64(p[0]))
			} else {
				f.slab.WriteAt(part, f.begin+4*int64(p[0]))
			}
		}
		say(map[string]any{"type": map[string]string{"load": "loaded", "flush": "flushed"}[m.Type]})
	case "step":
		if f.taken++; f.taken == 3 {
			switch f.how {
			case "dies":
				fmt.Fprintln(os.Stderr, "Traceback: CUDA error")
				return 3, true
			case "garbage":
				f.conn.Write([]byte("loss 3.2\nloss 3.1\n"))
				return 0, false
			case "diverges":
				say(map[string]any{"type": "error", "error": "loss nan", "kind": "diverged"})
				return 0, false
			case "leaves":
				say(map[string]any{"type": "error", "error": "it leaves", "kind": "leaving"})
				return 0, false
			case "claims":
				say(map[string]any{"type": "stepped", "tokens": 1 << 40, "loss": 1})
				return 0, false
			}
		}
		if f.how == "overflows" {
			m.LR = math.Inf(1)
		}
		for at := 0; at < len(f.values); at += 4 {
			setFloat(f.values[at:], float(f.values[at:])+float32(m.LR))
		}
		say(map[string]any{"type": "stepped", "tokens": 10 * len(m.Starts), "loss": 1.5, "unknown": true})
	case "evaluate":
		mean := 0.0
		for at := 0; at < len(f.values); at += 4 {
			mean += float64(float(f.values[at:]))
		}
		mean /= float64(len(f.values) / 4)
		switch f.how {
		case "has no text":
			say(map[string]any{"type": "error", "error": "there is no text", "remedy": "give some"})
			return 0, false
		case "dies in an evaluation":
			return 3, true
		case "says a constant":
			mean = 2
		}
		say(map[string]any{"type": "evaluated", "tokens": 8 * len(m.Starts), "loss": mean, "bytes": 4 * len(m.Starts)})
	case "save":
		if f.how == "full disk" {
			say(map[string]any{"type": "error", "error": "no space left on device", "remedy": "free some disk space"})
			return 0, false
		}
		os.WriteFile(m.Path, f.values, 0o600)
		say(map[string]any{"type": "saved"})
	case "stop":
		say(map[string]any{"type": "stopped"})
		return 0, true
	}
	return 0, false
}

// unknown is the first tensor that is not the fake's.
func unknown(tensors []tensorSpec) string {
	for i, s := range tensors {
		if v := testViews[i]; s.Name != v.Name || !slices.Equal(s.Shape, v.Shape) {
			return s.Name
		}
	}
	return ""
}

func float(b []byte) float32 {
	var x float32
	binary.Decode(b, binary.LittleEndian, &x)
	return x
}

func setFloat(b []byte, x float32) { binary.Encode(b, binary.LittleEndian, x) }

var testViews = tensor.Layout([]tensor.Spec{{Name: "a.weight", Shape: []int{3, 5}}, {Name: "b", Shape: []int{7}}, {Name: "scale"}})

func testConfig(t *testing.T, how string) Config {
	t.Helper()
	t.Setenv(envFake, how)
	return Config{
		Command: Run{Args: []string{os.Args[0]}}, Dir: filepath.Join(t.TempDir(), "learner"), Views: testViews, Recipe: `{"family":"fake"}`,
		Rows: 2, Context: 8, MostTokens: 1000,
		Starts: func(step int64, rows int) ([]uint64, error) { return make([]uint64, rows), nil },
		Log:    func(line string) { t.Log(line) },
	}
}

func begin(t *testing.T, how string) *Learner {
	t.Helper()
	l, err := Start(t.Context(), testConfig(t, how))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func all() []optimizer.Span { return []optimizer.Span{{Len: 23}} }

func TestLearnerStepsFlushesAndLoads(t *testing.T) {
	l := begin(t, "well")
	if l.Speed() != 1234.5 || l.Precision() != "bf16" || l.Name() != "fake 1" || len(l.Devices()) != 1 || l.Devices()[0].Kind != "cuda" {
		t.Errorf("speed %v, precision %s, name %s, devices %v", l.Speed(), l.Precision(), l.Name(), l.Devices())
	}
	local := l.Params()
	for i := range local {
		local[i] = float32(i)
	}
	for range 2 {
		if res, err := l.Step(t.Context(), 0.5); err != nil || res.Tokens != 20 || res.Loss != 1.5 {
			t.Fatal(res, err)
		}
	}
	if local[4] != 4 {
		t.Errorf("before a flush value 4 is %v", local[4])
	}
	if err := l.Flush([]optimizer.Span{{Offset: 3, Len: 2}, {Offset: 20, Len: 3}}); err != nil {
		t.Fatal(err)
	}
	for i, x := range local {
		want := float32(i)
		if i == 3 || i == 4 || i >= 20 {
			want++
		}
		if x != want {
			t.Errorf("after a flush value %d is %v, want %v", i, x, want)
		}
	}
	local[20] = 100
	l.Load([]optimizer.Span{{Offset: 20, Len: 1}})
	if err := l.Flush(all()); err != nil || local[20] != 100 || local[0] != 1 || l.Steps() != 2 {
		t.Errorf("%v: after a load value 20 is %v, value 0 %v, %d steps", err, local[20], local[0], l.Steps())
	}
}

// What a learner does wrong is said with its words and a remedy; it is lost until it starts again.
func TestLearnerIsLost(t *testing.T) {
	for how, want := range map[string][]string{
		"dies":     {"exit status 3", "CUDA error"},
		"garbage":  {"no frame"},
		"diverges": {"loss nan"},
		"claims":   {"tokens", "1 to 1000"},
	} {
		t.Run(how, func(t *testing.T) {
			l := begin(t, how)
			var err error
			for range 3 {
				if err != nil {
					t.Fatal(err)
				}
				_, err = l.Step(t.Context(), 1)
			}
			if !errors.Is(err, trainer.ErrLost) || errors.Is(err, trainer.ErrDiverged) != (how == "diverges") {
				t.Fatal(err)
			}
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v: does not say %q", err, w)
				}
			}
			if err := l.Flush(all()); !errors.Is(err, trainer.ErrLost) {
				t.Errorf("flush: %v", err)
			}
			l.Load(all())
			if _, err := l.State(); !errors.Is(err, trainer.ErrLost) {
				t.Errorf("state: %v", err)
			}
			for i := range l.Params() {
				l.Params()[i] = 7
			}
			if err := l.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Step(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if err := l.Flush(all()); err != nil || l.Params()[3] != 8 {
				t.Errorf("%v: after a restart from 7 and a step of 1: %v", err, l.Params()[3])
			}
		})
	}
}

func TestLearnerDoesNotStart(t *testing.T) {
	for how, want := range map[string][]string{
		"mute":         {"exit status 2", "no module named torch"},
		"old":          {"protocol"},
		"other layout": {"other tensors", "the model of the run"},
		"refuses":      {"cuda: no such device", "use --device cpu"},
	} {
		t.Run(how, func(t *testing.T) {
			l, err := Start(t.Context(), testConfig(t, how))
			if err == nil {
				l.Close()
				t.Fatal("it has started")
			}
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v: does not say %q", err, w)
				}
			}
		})
	}
	cfg := testConfig(t, "well")
	cfg.Command.Args = []string{"/nowhere/learner"}
	if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "/nowhere/learner") || !strings.Contains(err.Error(), "--learner") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, testConfig(t, "well")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A start that takes long is told of until it is over; one that does not is not.
func TestSlowStartIsTold(t *testing.T) {
	cfg := testConfig(t, "waits for a word")
	word := filepath.Join(t.TempDir(), "word")
	t.Setenv(envWord, word)
	var took []time.Duration
	cfg.SlowAfter = time.Millisecond
	cfg.Slow = func(d time.Duration) {
		if took = append(took, d); len(took) == 3 {
			if err := os.WriteFile(word, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	l, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if n := len(took); n < 4 || took[0] < time.Millisecond || took[1] < 2*took[0]-time.Millisecond || took[n-1] != 0 {
		t.Errorf("told of %v", took)
	}
	told := len(took)
	l.cfg.SlowAfter = helloWithin
	l.halt()
	if err := l.Restart(t.Context()); err != nil || len(took) != told {
		t.Errorf("%v; told of %v", err, took)
	}
}

// The optimizer's state is in one of two files, so that the last one is whole until the next is.
func TestLearnerKeepsItsState(t *testing.T) {
	cfg := testConfig(t, "refuses resume")
	l, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var states [][]byte
	for range 3 {
		if _, err := l.Step(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		b, err := l.State()
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, b)
	}
	if string(states[0]) == string(states[1]) || !strings.Contains(string(states[0]), "optimizer-0") || !strings.Contains(string(states[1]), "optimizer-1") {
		t.Errorf("states %s", states)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.State = states[2]
	if l, err = Start(t.Context(), cfg); err != nil { // it refuses the file, and begins without
		t.Fatal(err)
	}
	defer l.Close()
	if l.Steps() != 3 {
		t.Errorf("%d steps, want the 3 of before: batches go on", l.Steps())
	}
	if err := l.SetState([]byte(`{"File":"../../etc/passwd"}`)); err == nil {
		t.Error("took a file outside of its folder")
	}
}

// No process is left when its node closes it.
func TestLearnerEndsWithItsNode(t *testing.T) {
	l := begin(t, "well")
	ended := l.session.process.ended
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(stopWithin):
		t.Error("the process is still there")
	}
}

// A full disk costs a newer state, and not the learner.
func TestSaveThatFailsLosesNothing(t *testing.T) {
	l := begin(t, "full disk")
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := l.State(); err == nil || errors.Is(err, trainer.ErrLost) || !strings.Contains(err.Error(), "free some disk space") {
		t.Errorf("save on a full disk: %v", err)
	}
	if err := l.Flush(all()); err != nil || l.Params()[0] != 1 {
		t.Errorf("after it: %v, value %v", err, l.Params()[0])
	}
}

// Values that are no numbers are found before anything is made of them, although the loss is one.
func TestOverflowIsFound(t *testing.T) {
	l := begin(t, "overflows")
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(all()); !errors.Is(err, trainer.ErrDiverged) || !errors.Is(err, trainer.ErrLost) {
		t.Errorf("flush of infinite values: %v", err)
	}
	if x := l.Params()[3]; !math.IsInf(float64(x), 1) || !l.Unflushed() {
		t.Errorf("value 3 is %v, unflushed %t: the caller sets it anew", x, l.Unflushed())
	}
	if l.Accounted(); l.Flush(all()) != nil {
		t.Error("once all is accounted for there is something to flush")
	}
}

// The end of a process is seen although something that it started holds its stderr open.
func TestEndIsSeenBehindAHeldStderr(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	cfg := testConfig(t, "well")
	cfg.Command.Args = []string{"sh", "-c", "setsid sleep 30 >/dev/null & exit 3"}
	began := time.Now()
	if _, err := Start(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "exit status 3") || time.Since(began) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

// parent starts a learner, says which process it is, and waits to be killed.
func parent() int {
	os.Setenv(envFake, "well")
	dir, err := os.MkdirTemp("", "atoll-parent-")
	if err != nil {
		return 5
	}
	l, err := Start(context.Background(), Config{
		Command: Run{Args: []string{os.Args[0]}}, Dir: dir, Views: testViews, Rows: 2, Context: 8, MostTokens: 1000,
		Starts: func(int64, int) ([]uint64, error) { return nil, nil }, Log: func(string) {},
	})
	if err != nil {
		return 6
	}
	fmt.Println(l.session.process.cmd.Process.Pid, dir)
	select {}
}

// A learner goes with its node, however that ends.
func TestNoOrphanIsLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere the client in the learner sees to it")
	}
	node := exec.Command(os.Args[0])
	node.Env = append(os.Environ(), envFake+"=parent")
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var dir string
	if _, err := fmt.Fscan(out, &pid, &dir); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	node.Process.Kill()
	node.Wait()
	for end := time.Now().Add(stopWithin); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d lives on: %s", pid, stat)
		}
	}
}

// The slab is a file that every tool for safetensors reads: in memory for a learner that the node starts, in the folder for
// a script that attaches.
func TestSlabIsSafetensors(t *testing.T) {
	for name, cfg := range slabConfigs(t) {
		s, err := newSlab(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.values[22] = 3.5
		b, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(cfg.Dir, slabFile))
		if inMemory := s.path != filepath.Join(cfg.Dir, slabFile); inMemory != os.IsNotExist(err) || inMemory != (name == "starts" && runtime.GOOS == "linux") {
			t.Errorf("%s: slab %s in memory is %v, and in the folder: %v", name, s.path, inMemory, err)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		n := binary.LittleEndian.Uint64(b)
		var head map[string]struct {
			DType   string `json:"dtype"`
			Shape   []int  `json:"shape"`
			Offsets []int  `json:"data_offsets"`
		}
		if err := json.Unmarshal(b[8:8+n], &head); err != nil {
			t.Fatal(err)
		}
		values := b[8+n:]
		if (8+n)%slabAlign != 0 || len(values) != 4*23 || len(head) != 3 {
			t.Errorf("%s: values begin at %d and take %d bytes, %d tensors", name, 8+n, len(values), len(head))
		}
		if e := head["scale"]; e.DType != "F32" || len(e.Shape) != 0 || e.Offsets[0] != 88 || e.Offsets[1] != 92 || float(values[88:]) != 3.5 {
			t.Errorf("%s: scale is %+v, %v", name, e, float(values[88:]))
		}
		if e := head["a.weight"]; len(e.Shape) != 2 || e.Shape[0] != 3 || e.Shape[1] != 5 || e.Offsets[1] != 60 {
			t.Errorf("%s: a.weight is %+v", name, e)
		}
	}
}

// slabConfigs are those of a learner that the node starts, and of a script that attaches.
func slabConfigs(t *testing.T) map[string]Config {
	return map[string]Config{
		"starts":   {Dir: t.TempDir(), Views: testViews},
		"attaches": {Dir: t.TempDir(), Views: testViews, Command: Run{Attach: "here"}},
	}
}

// A script that outlives its node still has the slab of before: what it does there is nothing to the next node.
func TestSlabIsAFileOfItsOwn(t *testing.T) {
	for name, cfg := range slabConfigs(t) {
		s, err := newSlab(cfg)
		if err != nil {
			t.Fatal(err)
		}
		old, err := MapFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		next, err := newSlab(cfg)
		if err != nil {
			t.Fatal(err)
		}
		setFloat(old[s.begin:], 3)
		if float(old[s.begin:]) != 3 || next.values[0] != 0 {
			t.Errorf("%s: values %v of before, %v now", name, float(old[s.begin:]), next.values[0])
		}
		if err := next.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever a learner sends, reading it ends with a message or an error.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x10{\"type\":\"hello\"}"))
	f.Add([]byte("loss 3.2"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := readFrame(strings.NewReader(string(b)))
		if err != nil && a.Type != "" && !strings.Contains(err.Error(), "message") {
			t.Errorf("%+v with %v", a, err)
		}
	})
}

// Package standin is a learner that computes nothing and touches every value: what a run costs
// beside training is measured with it, for models that this machine cannot train. It speaks
// ../PROTOCOL.md from the other side.
package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"time"
	"unsafe"

	"atoll/optimizer/trainer/external"
)

// Config says how it behaves.
type Config struct {
	Step    time.Duration // that a step takes
	InPlace bool          // it steps the slab itself: no copy of the values, as on a machine whose accelerator shares memory
}

// learner is a stand-in under way.
type learner struct {
	cfg    Config
	conn   net.Conn
	shared []float32 // the slab
	own    []float32 // what it steps
	noise  []float32 // [noiseLen], what it adds, from places that random chooses
	random *rand.Rand
	length int // tokens of a row
}

// request is what a node says, as far as it matters here.
type request struct {
	Type    string   `json:"type"`
	Error   string   `json:"error"`
	Slab    string   `json:"slab"`
	Begin   int64    `json:"begin"`
	Values  int      `json:"values"`
	Layout  string   `json:"layout"`
	Context int      `json:"context"`
	Pieces  [][2]int `json:"pieces"`
	LR      float64  `json:"lr"`
	Starts  []uint64 `json:"starts"`
	Path    string   `json:"path"`
}

// Serve connects to the node that started this process and answers it until it says stop, or is
// gone.
func Serve(cfg Config) error {
	address := os.Getenv(external.EnvAddress)
	if address == "" {
		return errors.New("a stand-in is started by a node: atoll join --learner standin")
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return fmt.Errorf("reach the node: %w", err)
	}
	defer conn.Close()
	l := &learner{cfg: cfg, conn: conn}
	if err := l.say(map[string]any{
		"type": "hello", "protocol": external.Protocol, "token": os.Getenv(external.EnvToken), "name": "standin", "version": runtime.Version(),
		"precision": "f32", "evaluates": true, "devices": []external.Device{{Kind: "cpu", Name: "stand-in", Count: 1}},
	}); err != nil {
		return err
	}
	for {
		r, err := l.hear()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.answer(r); err != nil || r.Type == "stop" {
			return err
		}
	}
}

func (l *learner) say(message any) error { return external.WriteFrame(l.conn, message) }

func (l *learner) hear() (r request, err error) {
	b, err := external.ReadFrame(l.conn)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	return r, err
}

func (l *learner) answer(r request) error {
	switch r.Type {
	case "run":
		if err := l.begin(r); err != nil {
			return err
		}
		return l.say(map[string]any{"type": "ready", "layout": r.Layout, "tokens_per_second": 0, "memory_bytes": 4 * len(l.own)})
	case "load", "flush":
		l.move(r)
		return l.say(map[string]any{"type": map[string]string{"load": "loaded", "flush": "flushed"}[r.Type]})
	case "step":
		l.step(r.LR)
		return l.say(map[string]any{"type": "stepped", "tokens": max(1, len(r.Starts)) * l.length, "loss": math.Log(256)})
	case "evaluate":
		return l.say(map[string]any{"type": "evaluated", "tokens": len(r.Starts) * l.length, "loss": l.meanSquare()})
	case "save":
		if err := l.save(r.Path); err != nil {
			return l.say(map[string]any{"type": "error", "error": err.Error()})
		}
		return l.say(map[string]any{"type": "saved"})
	case "stop":
		return l.say(map[string]any{"type": "stopped"})
	}
	return fmt.Errorf("the node says %q %s", r.Type, r.Error)
}

// noiseLen is how many numbers the changes are taken from: they fit a cache, and a delta is a sum of other parts of them
// in each of its steps.
const noiseLen = 1 << 14

// drawNoise makes the changes. Two learners have other ones.
func (l *learner) drawNoise() {
	l.random = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	l.noise = make([]float32, noiseLen)
	for i := range l.noise {
		l.noise[i] = float32(l.random.NormFloat64())
	}
}

// save writes what Adam would: two moments of each value.
func (l *learner) save(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	b := make([]byte, 1<<20)
	for left := 8 * len(l.own); left > 0 && err == nil; left -= len(b) {
		_, err = f.Write(b[:min(left, len(b))])
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// begin maps the slab.
func (l *learner) begin(r request) error {
	b, err := external.MapFile(r.Slab)
	if err != nil {
		return err
	}
	if int64(len(b)) < r.Begin+4*int64(r.Values) || r.Begin%4 != 0 {
		return fmt.Errorf("the slab has %d bytes; %d values from byte %d do not fit", len(b), r.Values, r.Begin)
	}
	l.shared = unsafe.Slice((*float32)(unsafe.Pointer(&b[r.Begin])), r.Values)
	l.length = r.Context
	l.drawNoise()
	if l.own = l.shared; !l.cfg.InPlace {
		l.own = make([]float32, r.Values)
	}
	return nil
}

// move copies pieces between the slab and its own values.
func (l *learner) move(r request) {
	if l.cfg.InPlace {
		return
	}
	for _, p := range r.Pieces {
		shared, own := l.shared[p[0]:p[0]+p[1]], l.own[p[0]:p[0]+p[1]]
		if r.Type == "load" {
			copy(own, shared)
		} else {
			copy(shared, own)
		}
	}
}

// meanSquare is what it says of its values: of others it says something else.
func (l *learner) meanSquare() (mean float64) {
	for _, x := range l.own {
		mean += float64(x) * float64(x) / float64(len(l.own))
	}
	return mean
}

// step changes every value a little, as Adam's first steps do, in a direction that follows from
// its place, and takes its time.
//
// Changes are of a normal distribution, as those of a learner nearly are: so deltas compress as they do.
func (l *learner) step(lr float64) {
	began := time.Now()
	change, from := float32(lr/100), int(l.random.Uint32N(noiseLen))
	for at := 0; at < len(l.own); from = int(l.random.Uint32N(noiseLen)) {
		n := min(len(l.own)-at, noiseLen-from)
		for i, x := range l.noise[from : from+n] {
			l.own[at+i] += change * x
		}
		at += n
	}
	if left := l.cfg.Step - time.Since(began); left > 0 {
		time.Sleep(left)
	}
}

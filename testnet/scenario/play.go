package scenario

import (
	"math"

	"atoll/testnet/fault"
	"atoll/testnet/sim"
)

// Outcome is what became of a script's world: a function of the script.
type Outcome struct {
	Result     sim.Result
	Reports    []sim.Report // of all nodes that ever were
	WholeChain bool         // some node has every round, so that shares are known
	Said       map[string]int
	Recoveries []Recovery
	faults     []sim.Fault
	long       bool // payloads have a length of their own
}

// Recovery is how long a world took to be itself again after an event that ends
// a disturbance or brings a node.
type Recovery struct {
	Kind         fault.Verb
	Node         int // that came or came back; -1 if it is about the world
	At           sim.Time
	TogetherMs   float64 // until all nodes had one chain; +Inf: never
	Rounds       uint32  // closed meanwhile
	ContributeMs float64 // until a delta that it made since was folded; +Inf: never; NaN: nobody expects one
}

// lookEvery is the time between two looks at a world.
const lookEvery = 50

// Play runs a script's world to its end.
func Play(s *Script) (*Outcome, error) {
	w, err := sim.New(s.World)
	if err != nil {
		return nil, err
	}
	watch := newWatcher(w, s)
	w.Watch(lookEvery, watch.look)
	w.Finish()
	watch.look()
	o := &Outcome{Result: w.Result(), Said: w.Said(), Recoveries: watch.recoveries, faults: s.World.Faults, long: s.World.Scale > 0}
	if o.Result.Err == nil { // else a node may be in the middle of something
		o.Reports, o.WholeChain = w.Reports()
	}
	return o, nil
}

// watcher looks at a world while it plays.
type watcher struct {
	w          *sim.World
	due        []Recovery // what will have to be recovered from, by time
	recoveries []Recovery
	closed     []uint32 // rounds when each recovery began
	observers  map[int]bool
}

// recovers are the kinds after which a world has to find itself again, and
// whether one node has to contribute again.
var recovers = map[fault.Verb]bool{
	fault.Start: true, fault.Join: true, fault.Resume: false, fault.Work: true, fault.Merge: false, fault.Mend: false, fault.DiskFree: false,
	fault.Lose: false, fault.Leave: false,
}

func newWatcher(w *sim.World, s *Script) *watcher {
	x := &watcher{w: w, observers: map[int]bool{}}
	nodes := len(s.World.Founders)
	for i, spec := range s.World.Founders {
		x.observers[i] = spec.Observer
	}
	for _, f := range s.World.Faults {
		contributes, ok := recovers[f.Kind]
		if f.Kind == fault.Join {
			f.Node = nodes
			x.observers[nodes] = f.Spec.Observer
			nodes++
		}
		if !ok {
			continue
		}
		r := Recovery{Kind: f.Kind, Node: -1, At: f.At, TogetherMs: math.Inf(1), ContributeMs: math.NaN()}
		if contributes {
			r.Node = f.Node
		}
		if contributes && !x.observers[f.Node] {
			r.ContributeMs = math.Inf(1)
		}
		x.due = append(x.due, r)
	}
	return x
}

func (x *watcher) look() {
	now := x.w.Now() - sim.Start
	for len(x.due) > 0 && x.due[0].At < now {
		x.recoveries, x.due = append(x.recoveries, x.due[0]), x.due[1:]
		x.closed = append(x.closed, x.w.Closed())
	}
	together := false
	for i := range x.recoveries {
		r := &x.recoveries[i]
		if math.IsInf(r.TogetherMs, 1) && (together || x.w.Together()) {
			together = true
			r.TogetherMs, r.Rounds = float64(now-r.At), x.w.Closed()-min(x.closed[i], x.w.Closed())
		} else if math.IsInf(r.TogetherMs, 1) {
			break // nor are they for those that came later
		}
	}
	x.lookAtNodes()
}

func (x *watcher) lookAtNodes() {
	nodes := x.w.Nodes()
	for i := range x.recoveries {
		r := &x.recoveries[i]
		if !math.IsInf(r.ContributeMs, 1) || r.Node >= len(nodes) {
			continue
		}
		if at := nodes[r.Node].Contributed(); at >= r.At {
			r.ContributeMs = float64(at - r.At)
		}
	}
}

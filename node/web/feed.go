package web

import (
	"encoding/json"
	"math"
	"reflect"
	"sync"
	"time"

	"atoll/node/status"
)

// viewEvery is the least time between two views: nodes have something new about once a second.
const viewEvery = time.Second

// Feed has the newest view of a world for all viewers. It is safe for concurrent use.
type Feed struct {
	now func() time.Time

	mu      sync.Mutex
	world   World
	rates   meter
	due     bool // world is newer than encoded
	madeAt  time.Time
	encoded []byte // the view as JSON, shared by all viewers: never changed
	made    uint64 // how many views there were
}

// NewFeed is a feed of a world that nothing is known of yet.
func NewFeed() *Feed { return &Feed{now: time.Now, due: true, rates: meter{}} }

// Offer gives the feed the newest of a world. It keeps w, and never waits for a viewer.
func (f *Feed) Offer(w World) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.world, f.due = w, true
	for _, n := range w.Nodes {
		f.rates.record(n.Status)
	}
}

// World is the newest that was offered.
func (f *Feed) World() World {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.world
}

// Statuses are the newest of the nodes that have said anything of the run.
func (f *Feed) Statuses() (all []status.Snapshot) {
	for _, n := range f.World().Nodes {
		if n.seen() {
			all = append(all, n.Status)
		}
	}
	return all
}

// Encoded is the newest view as JSON, and its number, which grows. All its viewers
// share one encoding; nothing is encoded while nobody looks.
func (f *Feed) Encoded() (view []byte, number uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); f.due && (f.encoded == nil || now.Sub(f.madeAt) >= viewEvery) {
		f.encoded, f.madeAt, f.due, f.made = encode(viewOf(f.world, f.rates, now)), now, false, f.made+1
	}
	return f.encoded, f.made
}

// encode writes a view as JSON. Numbers that JSON has not, such as the loss of a run
// that diverged, are left out.
func encode(v View) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		dropInfinite(&v)
		b, err = json.Marshal(v)
	}
	if err != nil {
		panic("web: a view cannot be encoded: " + err.Error()) // it has numbers and strings alone
	}
	return b
}

// dropInfinite sets to 0 whatever number in a view is none.
func dropInfinite(view any) { dropIn(reflect.ValueOf(view).Elem()) }

func dropIn(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			v.SetFloat(0)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			dropIn(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			dropIn(v.Index(i))
		}
	default: // nothing else can hold such a number
	}
}

// meter measures the traffic of nodes between statuses, by the node's id.
type meter map[string]*traffic

// traffic is what a node had sent and received at some moments.
type traffic struct{ from, middle, to sample }

type sample struct {
	at             time.Time
	sent, received uint64
}

// Bounds on a meter.
const (
	meterOver = 5 * time.Second // at least, and at most twice that: long enough that bursts of payloads do not flicker
	meterMost = 1024            // nodes: a world has fewer
)

// record takes in what a status says of traffic.
func (m meter) record(s status.Snapshot) {
	now := sample{s.At, s.Net.SentBytes, s.Net.ReceivedBytes}
	t := m[s.Self]
	switch {
	case s.Run == "" || t == nil && len(m) >= meterMost:
	case t == nil || now.sent < t.to.sent || now.received < t.to.received: // the first one of a process
		m[s.Self] = &traffic{now, now, now}
	default:
		if t.to = now; now.at.Sub(t.middle.at) >= meterOver {
			t.from, t.middle = t.middle, now
		}
	}
}

// of is how much a node sends and receives, in bytes per second; 0 where it is not known yet.
func (m meter) of(s status.Snapshot) (up, down float64) {
	t := m[s.Self]
	if t == nil {
		return 0, 0
	}
	seconds := t.to.at.Sub(t.from.at).Seconds()
	if seconds <= 0 {
		return 0, 0
	}
	return float64(t.to.sent-t.from.sent) / seconds, float64(t.to.received-t.from.received) / seconds
}

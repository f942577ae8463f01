package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Alarm is something wrong with a node or its run, for which a person has to look. All screens show the same ones.
type Alarm struct {
	Kind   string    `json:"kind"`          // of the event, or AlarmSilent or AlarmThin
	Who    string    `json:"who,omitempty"` // whom it is about, a peer's id in hex or its first digits; "" = this node
	Since  time.Time `json:"since"`
	Text   string    `json:"text"` // what was found; it calls machines by their ids, as all texts do
	Remedy string    `json:"remedy"`
}

// Kinds of alarms that are no events: the run goes on with them, and they end by themselves.
const (
	AlarmSilent = "silent" // some of the peers are not heard
	AlarmThin   = "thin"   // links do not carry the run's deltas
)

// AlarmWorse is the kind of the alarm that the model is worse than it was.
const AlarmWorse = "worse"

// AlarmDisk is the kind of the event that the disk takes nothing more.
const AlarmDisk = "disk"

// RevokedRemedy says what the owner of a machine that was revoked can do.
const RevokedRemedy = "ask the run's owner for a new link, which `atoll invite` prints, and join with it in a new folder"

// Passing says that the run mends it by itself, or goes on without.
func (a Alarm) Passing() bool {
	return a.Kind == AlarmSilent || a.Kind == AlarmThin || a.Kind == CutOff
}

// Line is an alarm as a line of a screen.
func (a Alarm) Line() string {
	text := a.Kind
	if a.Who != "" {
		text += " " + ShortID(a.Who)
	}
	return Printable(text + ": " + a.Text + "; do: " + a.Remedy)
}

// Bounds on alarms.
const (
	mostAlarms = 4
	alarmFor   = 15 * time.Minute // somebody comes to look in that time; after that it is one of the events
	mostNamed  = 4
)

// ended are the kinds of alarms that last until an event says that they are over, by the kind of that event.
var ended = map[string]string{"disk well": AlarmDisk, "learner back": "learner lost"}

// AlarmsOf are the alarms of a status at its time, the newest first and those that pass by themselves last.
func AlarmsOf(s Snapshot) (alarms []Alarm) {
	over, lasting := map[string]bool{}, slices.Collect(maps.Values(ended))
	for _, e := range slices.Backward(s.Events) {
		over[ended[e.Kind]] = true
		if e.Remedy == "" || over[e.Kind] || s.At.Sub(e.At) >= alarmFor && !slices.Contains(lasting, e.Kind) {
			continue
		}
		a := Alarm{Kind: e.Kind, Who: e.Peer, Since: e.At, Text: e.Text, Remedy: e.Remedy}
		if strings.HasPrefix(s.Self, a.Who) {
			a.Who = ""
		}
		if i := slices.IndexFunc(alarms, func(b Alarm) bool { return a.Kind == b.Kind && a.Who == b.Who }); i >= 0 {
			alarms[i].Since = a.Since
		} else if len(alarms) < mostAlarms {
			alarms = append(alarms, a)
		}
	}
	if text := s.Worse(); text != "" {
		alarms = append(alarms, Alarm{Kind: AlarmWorse, Since: s.At, Text: text, Remedy: "begin another run with a smaller --lr; from values that were trained before, --lr 1e-5 or so"})
	}
	if s.Finished {
		return alarms
	}
	if a := silentAlarm(s); a.Kind != "" {
		alarms = append(alarms, a)
	}
	if s.Plan.Bound == BoundThin {
		alarms = append(alarms, Alarm{Kind: AlarmThin, Since: s.Started, Text: "the links are too thin for this run, however rare its deltas are: they come late",
			Remedy: fmt.Sprintf("a larger batch or a sparse codec (`atoll new --bandwidth`) takes less; the run's H is %d", s.Plan.H)})
	}
	return alarms
}

// Misses says that a peer is not heard and somebody should look why. Like the alarms of events that ends after some time, and it is
// not so of whom the process has yet to hear.
func (s Snapshot) Misses(p Peer) bool {
	return p.State == Gone && p.LagS > 0 && p.LagS < min(alarmFor, s.At.Sub(s.Started)).Seconds() && !s.Finished
}

// silentAlarm says who is not heard; it has no kind if all are.
func silentAlarm(s Snapshot) (a Alarm) {
	var names []string
	peers, longest := 0, 0.0
	for _, p := range s.Peers {
		missed := s.Misses(p)
		if !p.Self && (p.Here() || missed) {
			peers++
		}
		if !missed {
			continue
		}
		if names = append(names, ShortID(p.ID)); p.LagS > longest {
			a.Who, longest = p.ID, p.LagS
		}
	}
	n := len(names)
	if n == 0 {
		return a
	}
	if n > 1 {
		a.Who = ""
	}
	if n > mostNamed {
		names = append(names[:mostNamed], fmt.Sprintf("%d more", n-mostNamed))
	}
	a.Kind, a.Since = AlarmSilent, s.At.Add(-time.Duration(longest*float64(time.Second)))
	a.Text = fmt.Sprintf("%d of %d peers not heard (%s)", n, peers, strings.Join(names, ", "))
	a.Remedy = "look whether they are cut off or switched off; the run goes on without them"
	if c := s.Condition(); c.Word == CutOff {
		a.Kind, a.Text, a.Remedy = CutOff, c.Why, "look at the network of this machine first, then at the others"
	}
	return a
}

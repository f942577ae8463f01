package limits

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Quota is how many bytes a node may send and receive, both together, in each period of the
// local calendar. The zero value is no limit.
type Quota struct {
	Bytes  uint64
	Period Period
}

// Period is a span of the calendar.
type Period string

// The periods of a quota.
const (
	Month Period = "month"
	Day   Period = "day"
)

// ParsePeriod reads the name of a period.
func ParsePeriod(text string) (Period, error) {
	if p := Period(text); p == Month || p == Day {
		return p, nil
	}
	return "", fmt.Errorf("%q is no period of a quota; use %s or %s", text, Month, Day)
}

// Limited says whether there is a quota.
func (q Quota) Limited() bool { return q.Bytes > 0 }

// reserveParts is the part of a quota that bulk leaves: a node that is paused publishes what
// it has, and sends only heartbeats until the period ends.
const reserveParts = 50

// Bulk is how much of the quota payloads and snapshots may take.
func (q Quota) Bulk() uint64 { return q.Bytes - q.Bytes/reserveParts }

// Ends is when the period of a time ends.
func (p Period) Ends(at time.Time) time.Time {
	year, month, day := at.Date()
	if p == Day {
		return time.Date(year, month, day+1, 0, 0, 0, 0, at.Location())
	}
	return time.Date(year, month+1, 1, 0, 0, 0, 0, at.Location())
}

// Traffic is what a node sent and received, by days of the local calendar. A clock that is
// wrong for a while books bytes under other days, and takes none away.
type Traffic struct{ days map[string]Bytes }

// Bytes are counted both ways.
type Bytes struct {
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"`
}

// Sum is both together, as a quota counts.
func (b Bytes) Sum() uint64 { return add(b.Sent, b.Received) }

func (b Bytes) plus(c Bytes) Bytes {
	return Bytes{Sent: add(b.Sent, c.Sent), Received: add(b.Received, c.Received)}
}

// add stops at the largest number: a file may say anything.
func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// maxDays bounds the days that are kept: more than a year, so that a clock that jumps ahead
// and back drops none of this month.
const maxDays = 400

// maxTrafficFile bounds a file of maxDays days, each of at most 100 bytes.
const maxTrafficFile = 100 * (maxDays + 1)

// Count books bytes under the day of a time.
func (t *Traffic) Count(at time.Time, b Bytes) {
	if b == (Bytes{}) {
		return
	}
	if t.days == nil {
		t.days = map[string]Bytes{}
	}
	today := at.Format(time.DateOnly)
	t.days[today] = t.days[today].plus(b)
	if len(t.days) > maxDays {
		t.dropFarthest(at)
	}
}

// dropFarthest forgets the day that is farthest from today.
func (t *Traffic) dropFarthest(today time.Time) {
	far, farthest := time.Duration(-1), ""
	for _, day := range slices.Sorted(maps.Keys(t.days)) {
		at, _ := time.Parse(time.DateOnly, day) // checked when it was read
		if d := today.Sub(at).Abs(); d > far {
			far, farthest = d, day
		}
	}
	delete(t.days, farthest)
}

// Used is what was counted in the period of a time.
func (t *Traffic) Used(p Period, at time.Time) (used Bytes) {
	name := at.Format(time.DateOnly)
	if p == Month {
		name = at.Format("2006-01")
	}
	for day, b := range t.days {
		if len(day) >= len(name) && day[:len(name)] == name {
			used = used.plus(b)
		}
	}
	return used
}

// trafficFile is how the counts are kept.
type trafficFile struct {
	Days map[string]Bytes `json:"days"`
}

// Encode makes a file of the counts.
func (t *Traffic) Encode() []byte {
	b, err := json.Marshal(trafficFile{Days: t.days})
	if err != nil {
		panic("encode counts: " + err.Error()) // maps of numbers always can be
	}
	return append(b, '\n')
}

// DecodeTraffic reads such a file.
func DecodeTraffic(b []byte) (*Traffic, error) {
	if len(b) > maxTrafficFile {
		return nil, fmt.Errorf("a file of traffic has %d bytes; at most %d are possible", len(b), maxTrafficFile)
	}
	var f trafficFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, fmt.Errorf("file of traffic: %w", err)
	}
	if len(f.Days) > maxDays {
		return nil, fmt.Errorf("file of traffic: %d days; at most %d are kept", len(f.Days), maxDays)
	}
	for day := range f.Days {
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			return nil, fmt.Errorf("file of traffic: day %q: %w", day, err)
		}
	}
	return &Traffic{days: f.Days}, nil
}

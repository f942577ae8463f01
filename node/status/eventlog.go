package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"atoll/node/files"
)

// EventsFile has the events of a node, in its folder: a line of JSON for each, over restarts.
const EventsFile = "events.jsonl"

// Bounds on it. When the file is full it becomes the older one, which is then gone.
const (
	olderEvents    = EventsFile + ".old"
	maxEventsBytes = 1 << 20
	maxEventText   = 4 << 10 // of one event: peers have a say in it
)

// EventLog writes the events of a node. Only one process may at a time, and one goroutine of it.
type EventLog struct {
	dir  string
	file *os.File
	size int64
	most int64
}

// OpenEventLog goes on with the record of a folder.
func OpenEventLog(dir string) (*EventLog, error) {
	l := &EventLog{dir: dir, most: maxEventsBytes}
	return l, l.open()
}

func (l *EventLog) path() string { return filepath.Join(l.dir, EventsFile) }

// open appends to the file. A crash may have left half a line, which then ends.
func (l *EventLog) open() error {
	f, err := os.OpenFile(l.path(), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("record of events: %w", err)
	}
	info, err := f.Stat()
	if err == nil {
		l.file, l.size = f, info.Size()
		err = l.endLine()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("record of events: %w", err), f.Close())
	}
	return nil
}

func (l *EventLog) endLine() error {
	if l.size == 0 {
		return nil
	}
	var last [1]byte
	if _, err := l.file.ReadAt(last[:], l.size-1); err != nil || last[0] == '\n' {
		return err
	}
	return l.write([]byte("\n"))
}

func (l *EventLog) write(b []byte) error {
	n, err := l.file.Write(b)
	l.size += int64(n)
	return err
}

// Append writes an event. It is on its way to the disk when Append returns, and not synced.
func (l *EventLog) Append(e Event) error {
	e.Text = e.Text[:min(len(e.Text), maxEventText)]
	b, err := json.Marshal(e)
	if err == nil && l.size+int64(len(b)) > l.most {
		err = l.rotate()
	}
	if err == nil {
		err = l.write(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("record of events: %w", err)
	}
	return nil
}

// rotate begins a new file.
func (l *EventLog) rotate() error {
	err := errors.Join(l.file.Close(), files.Rename(l.path(), filepath.Join(l.dir, olderEvents)))
	return errors.Join(err, l.open()) // the next event tries again what failed
}

// Close ends the record.
func (l *EventLog) Close() error { return l.file.Close() }

// EventReader reads the record of a folder, also while a node writes it.
type EventReader struct {
	dir  string
	last os.FileInfo // of the file that was read last; nil before the first
	at   int64       // bytes of it that were read
}

// ReadEvents begins at the oldest event that the folder has.
func ReadEvents(dir string) *EventReader { return &EventReader{dir: dir} }

// Next returns the events since the last call, oldest first. Lines that are no events are left out: a
// crash may cut one. The error is os.ErrNotExist if there is no record.
func (r *EventReader) Next() (events []Event, err error) {
	f, err := os.Open(filepath.Join(r.dir, EventsFile))
	if err != nil {
		if r.last != nil && errors.Is(err, os.ErrNotExist) {
			return nil, nil // a new file is just beginning
		}
		return nil, fmt.Errorf("record of events: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("record of events: %w", err)
	}
	if r.last == nil || !os.SameFile(r.last, info) {
		if events, err = r.remainder(); err != nil {
			return nil, err
		}
		r.at = 0
	}
	r.last = info
	newer, n, err := eventsFrom(f, r.at)
	r.at += n
	return append(events, newer...), err
}

// remainder is what has not been read of the older file.
func (r *EventReader) remainder() ([]Event, error) {
	f, err := os.Open(filepath.Join(r.dir, olderEvents))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("record of events: %w", err)
	}
	defer f.Close()
	at := int64(0)
	if info, err := f.Stat(); err == nil && r.last != nil && os.SameFile(r.last, info) {
		at = r.at
	}
	events, _, err := eventsFrom(f, at)
	return events, err
}

// eventsFrom reads whole lines from a place on, and says how many bytes these are.
func eventsFrom(f io.ReaderAt, at int64) (events []Event, n int64, err error) {
	b, err := io.ReadAll(io.NewSectionReader(f, at, 2*maxEventsBytes))
	if err != nil {
		return nil, 0, fmt.Errorf("record of events: %w", err)
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	for l := range bytes.SplitSeq(b, []byte("\n")) {
		var e Event
		if json.Unmarshal(l, &e) == nil && !e.At.IsZero() {
			events = append(events, e)
		}
	}
	return events, int64(len(b)), nil
}

package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	stepsFile = "steps.log"

	// stepSize is the length of a record: four numbers and a checksum, little
	// endian. It divides the sector size, so that no record spans two sectors.
	stepSize = 8 + 8 + 8 + 4 + 4
)

// Step is one inner step that was taken.
type Step struct {
	Number uint64 // as the trainer counts
	Tokens uint64 // trained on
	EndMs  int64  // when it ended, unix milliseconds
	Micros uint32 // how long it took, pacing included
}

// Steps sums a step log.
type Steps struct {
	Steps   uint64
	Tokens  uint64
	Micros  uint64
	Last    Step   // the last record
	Damaged uint64 // records with a wrong checksum, not counted above
}

// StepLog is an append-only file of steps. Each record is written as it comes,
// unsynced: it survives the death of the process, though not a loss of power.
// While the disk takes none they wait in memory. Use it from one goroutine.
type StepLog struct {
	f       *os.File
	disk    Disk
	sum     Steps
	size    int64  // of the whole records in the file
	waiting []byte // records that the file does not have yet
	torn    bool   // the file may end in part of a record
}

// maxWaitingSteps bounds the records that wait while the disk is full: a day of
// steps of a second, in 3 MiB.
const maxWaitingSteps = 86_400

// OpenStepLog opens the step log of the store's folder. A torn last record, left
// by a crash, is cut off. The caller closes it.
func (s *Store) OpenStepLog() (*StepLog, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, stepsFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open step log: %w", err)
	}
	l := &StepLog{f: f, disk: s.disk}
	l.sum, l.size, err = sumSteps(f)
	if err == nil {
		err = l.cut()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open step log %s: %w", path, err), f.Close())
	}
	return l, nil
}

// cut removes part of a record from the end of the file.
func (l *StepLog) cut() error {
	err := l.disk.truncate(l.f, l.size)
	l.torn = err != nil
	return err
}

// SumSteps sums the step log in dir, whether or not a node has it open: all
// zero if there is none.
func SumSteps(dir string) (sum Steps, err error) {
	err = readSteps(dir, func(f io.Reader) error {
		sum, _, err = sumSteps(f)
		return err
	})
	return sum, err
}

// EachStep calls f for every step in the log in dir, oldest first, whether or not
// a node has it open; damaged records are left out.
func EachStep(dir string, f func(Step)) error {
	return readSteps(dir, func(r io.Reader) error {
		_, err := eachStep(r, func(step Step, ok bool) {
			if ok {
				f(step)
			}
		})
		return err
	})
}

// readSteps reads the step log in dir, if there is one.
func readSteps(dir string, read func(io.Reader) error) error {
	f, err := os.Open(filepath.Join(dir, stepsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read steps: %w", err)
	}
	if err := errors.Join(read(f), f.Close()); err != nil {
		return fmt.Errorf("read steps of %s: %w", dir, err)
	}
	return nil
}

// Append adds a step. After an error it waits in memory, with those before it,
// for the next Append or Close.
func (l *StepLog) Append(step Step) error {
	if len(l.waiting) >= maxWaitingSteps*stepSize {
		return fmt.Errorf("append step %d: %w", step.Number, ErrWaiting)
	}
	l.waiting = step.append(l.waiting)
	l.sum.add(step)
	if err := l.flush(); err != nil {
		return fmt.Errorf("append step %d: %w", step.Number, err)
	}
	return nil
}

// flush writes what waits.
func (l *StepLog) flush() error {
	if l.torn {
		if err := l.cut(); err != nil {
			return err
		}
	}
	if err := l.disk.write(l.f, l.waiting); err != nil {
		l.torn = true
		return err
	}
	l.size += int64(len(l.waiting))
	l.waiting = l.waiting[:0]
	return nil
}

// Sum is the sum of all steps in the log, earlier processes' and those that
// wait included.
func (l *StepLog) Sum() Steps { return l.sum }

// Close closes the file after writing what waits and syncing it.
func (l *StepLog) Close() error {
	var err error
	if len(l.waiting) > 0 {
		err = l.flush()
	}
	return errors.Join(err, l.disk.sync(l.f), l.f.Close())
}

func (s *Steps) add(step Step) {
	s.Steps++
	s.Tokens += step.Tokens
	s.Micros += uint64(step.Micros)
	s.Last = step
}

// append appends the record of a step to b.
func (s Step) append(b []byte) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint64(b, s.Number)
	b = binary.LittleEndian.AppendUint64(b, s.Tokens)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.EndMs))
	b = binary.LittleEndian.AppendUint32(b, s.Micros)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b[at:]))
}

// parseStep decodes a record; ok is false if its checksum is wrong.
func parseStep(b *[stepSize]byte) (s Step, ok bool) {
	const body = stepSize - crc32.Size
	s = Step{
		Number: binary.LittleEndian.Uint64(b[0:]),
		Tokens: binary.LittleEndian.Uint64(b[8:]),
		EndMs:  int64(binary.LittleEndian.Uint64(b[16:])),
		Micros: binary.LittleEndian.Uint32(b[24:]),
	}
	return s, crc32.ChecksumIEEE(b[:body]) == binary.LittleEndian.Uint32(b[body:])
}

// sumSteps sums the records of a log and returns the length of the whole ones.
func sumSteps(f io.Reader) (sum Steps, whole int64, err error) {
	whole, err = eachStep(f, func(step Step, ok bool) {
		if ok {
			sum.add(step)
		} else {
			sum.Damaged++
		}
	})
	return sum, whole, err
}

// eachStep reads the records of a log, ok where the checksum is right, and
// returns the length of the whole ones.
func eachStep(f io.Reader, do func(step Step, ok bool)) (whole int64, err error) {
	r := bufio.NewReader(f)
	var record [stepSize]byte
	for {
		_, err = io.ReadFull(r, record[:])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		whole += stepSize
		step, ok := parseStep(&record)
		do(step, ok)
	}
}

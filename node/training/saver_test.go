package training

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// savedPattern is a state of so many bytes that says where each is.
func savedPattern(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i ^ i>>8 ^ i>>16)
	}
	return b
}

// slowReads takes a time for each part of a state that it is given.
func slowReads(state io.Reader, each time.Duration) (all []byte, err error) {
	part := make([]byte, checkpointPart)
	for {
		n, err := io.ReadFull(state, part)
		time.Sleep(each)
		all = append(all, part[:n]...)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// A disk that takes three seconds for a state is written to a fiftieth of the time, and the learner
// steps meanwhile.
func TestSlowDiskIsSparedBySaver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := makeBench(t, 100*time.Millisecond, 0)
		b.learns()
		var meanwhile atomic.Int64
		b.saver.Write = func(state io.Reader) error {
			_, err := io.ReadAll(state)
			before := b.told.Load()
			time.Sleep(3 * time.Second)
			meanwhile.Store(b.told.Load() - before)
			b.saves.Add(1)
			return err
		}
		b.start(t)
		b.SetMay(true)
		b.after(400 * time.Second)
		if got := b.saves.Load(); got != 3 { // after 10 s, and then every 153 s
			t.Errorf("%d saves in 400 s", got)
		}
		if got := meanwhile.Load(); got < 25 {
			t.Errorf("%d steps in the three seconds of a write", got)
		}
		b.stop(t)
	})
}

// A learner in another process writes gigabytes itself, and takes no step meanwhile: that is a fiftieth of the time as well.
func TestLearnerThatSavesItselfIsSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := makeBench(t, 100*time.Millisecond, 0)
		b.learns()
		b.saver.State = func() (io.Reader, error) {
			time.Sleep(2 * time.Second)
			return bytes.NewReader([]byte("its file")), nil
		}
		b.start(t)
		b.SetMay(true)
		b.after(400 * time.Second)
		if got := b.saves.Load(); got != 4 { // after 10 s, and then every 102 s
			t.Errorf("%d saves in 400 s", got)
		}
		b.stop(t)
	})
}

// A large state goes to a slow disk part by part, with steps between the parts, and all of it arrives. A fast disk takes
// it between two steps.
func TestLargeStateIsSavedInParts(t *testing.T) {
	want := savedPattern(9*checkpointPart + 5)
	for name, each := range map[string]time.Duration{"slow": 2 * time.Second, "fast": time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			b := makeBench(t, 100*time.Millisecond, 0)
			b.learns()
			b.saver.State = func() (io.Reader, error) { return bytes.NewReader(want), nil }
			var stepped int64
			b.saver.Write = func(state io.Reader) error {
				before := b.told.Load()
				got, err := slowReads(state, each)
				stepped = b.told.Load() - before
				if !bytes.Equal(got, want) || err != nil {
					t.Errorf("%s: %d bytes came, %v", name, len(got), err)
				}
				b.saves.Add(1)
				return err
			}
			b.start(t)
			b.SetMay(true)
			b.after(60 * time.Second)
			if b.saves.Load() == 0 || each > time.Second != (stepped > 20) || each < time.Second && stepped > 0 {
				t.Errorf("%s: %d saves, %d steps during one", name, b.saves.Load(), stepped)
			}
			if took := b.Stats().Account.Save; took > 2*checkpointAtOnce.Seconds() {
				t.Errorf("%s: the learner waited %.1f s for the disk", name, took)
			}
			b.stop(t)
		})
	}
}

// A learner that ends in the middle of a save leaves it, and the writer knows that the state is not whole.
func TestSaveIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := makeBench(t, 100*time.Millisecond, 0)
		b.learns()
		b.saver.State = func() (io.Reader, error) { return bytes.NewReader(make([]byte, 100*checkpointPart)), nil }
		came := make(chan error, 1)
		b.saver.Write = func(state io.Reader) error {
			_, err := slowReads(state, time.Second)
			came <- err
			return err
		}
		b.start(t)
		b.SetMay(true)
		b.after(30 * time.Second)
		b.stop(t)
		if err := <-came; !errors.Is(err, errSaveCut) {
			t.Errorf("the writer was told %v", err)
		}
	})
}

// What fails is said, and tried again: a disk that takes nothing, and a state that cannot be had, or not all of it.
func TestSaverFails(t *testing.T) {
	gone := errors.New("gone")
	for what, fail := range map[string]func(b *bench){
		"inner optimizer state": func(b *bench) { b.saver.State = func() (io.Reader, error) { return nil, gone } },
		"inner optimizer state, its rest": func(b *bench) {
			b.saver.State = func() (io.Reader, error) {
				return io.MultiReader(bytes.NewReader(make([]byte, 2*checkpointPart)), iotest.ErrReader(gone)), nil
			}
		},
		"checkpoint": func(b *bench) { b.saver.Write = func(io.Reader) error { return gone } },
	} {
		synctest.Test(t, func(t *testing.T) {
			b := makeBench(t, 100*time.Millisecond, 0)
			b.learns()
			var told atomic.Int64
			b.saver.report = func(of string, err error) {
				if err == nil {
					return
				}
				told.Add(1)
				if of != what[:len(of)] || err != gone {
					t.Errorf("%s: told %s: %v", what, of, err)
				}
			}
			fail(b)
			b.start(t)
			b.SetMay(true)
			b.after(25 * time.Second)
			if told.Load() != 2 || b.saves.Load() != 0 {
				t.Errorf("%s: told %d times, %d saves", what, told.Load(), b.saves.Load())
			}
			b.stop(t)
		})
	}
}

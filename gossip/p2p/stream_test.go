package p2p

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"atoll/gossip/wire"
)

// TestStreamsCarryBytesBothWays sends more than a window through a service.
func TestStreamsCarryBytesBothWays(t *testing.T) {
	a, b := start(t, newPerson(1).config()), start(t, newPerson(2).config())
	from := make(chan wire.PeerID, 1)
	b.Accept("mirror", func(id wire.PeerID, s Stream) {
		from <- id
		io.Copy(s, s)
		s.Close()
	})
	join(t, a, b)
	s, err := a.Open(t.Context(), b.ID(), "mirror")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.SetReadDeadline(time.Now().Add(time.Minute)), s.SetWriteDeadline(time.Now().Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	go s.Write(sent)
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(s, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes back, %v", len(got), err)
	}
	if id := <-from; id != a.ID() {
		t.Errorf("it came from %v, not from %v", id, a.ID())
	}
	if err := s.Reset(); err != nil {
		t.Error(err)
	}
}

// TestStreamsNeedAPeerThatIsUp: nobody is dialled, and a closed host opens none.
func TestStreamsNeedAPeerThatIsUp(t *testing.T) {
	a, b := start(t, newPerson(1).config()), start(t, newPerson(2).config())
	if _, err := a.Open(t.Context(), b.ID(), "mirror"); !errors.Is(err, ErrNotConnected) {
		t.Errorf("not connected: %v", err)
	}
	join(t, a, b)
	s, err := a.Open(t.Context(), b.ID(), "nobody serves this")
	if err == nil {
		s.SetReadDeadline(time.Now().Add(time.Minute))
		_, err = s.Read(make([]byte, 1))
	}
	if err == nil {
		t.Error("a service that the peer does not have gave no error")
	}
	closeHost(t, a)
	if _, err := a.Open(t.Context(), b.ID(), "mirror"); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestCloseEndsStreamsThatAreHeld: Close resets what a service still holds, and
// waits for it.
func TestCloseEndsStreamsThatAreHeld(t *testing.T) {
	a, b := start(t, newPerson(1).config()), start(t, newPerson(2).config())
	held, ended := make(chan error, 1), make(chan error, 1)
	b.Accept("hold", func(_ wire.PeerID, s Stream) {
		_, err := s.Read(make([]byte, 1))
		held <- err
		_, err = s.Read(make([]byte, 1))
		ended <- err
	})
	join(t, a, b)
	s, err := a.Open(t.Context(), b.ID(), "hold")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	closeHost(t, b)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the stream ended without an error")
		}
	default:
		t.Error("Close did not wait for the service")
	}
}

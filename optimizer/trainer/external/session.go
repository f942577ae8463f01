package external

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// session is the connection to one learner, from its hello to its end.
type session struct {
	conn    net.Conn
	hello   answer
	process *process // nil: a script that the node has not started, and never ends

	once sync.Once
	over chan struct{} // closed when the node has let go of it
}

// greetWithin is how long one connection may take for its hello. Others on this machine may
// connect too, and say nothing.
const greetWithin = 5 * time.Second

// listen opens a port for a learner of this machine, and makes the secret that it has to name.
func listen() (l net.Listener, token string, err error) {
	if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, "", fmt.Errorf("listen for the learner: %w", err)
	}
	secret := make([]byte, 16)
	rand.Read(secret) // never fails
	return l, hex.EncodeToString(secret), nil
}

// closeWhen closes a listener once a channel is closed, unless stop is called before.
func closeWhen(ended <-chan struct{}, l net.Listener) (stop func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-ended:
			l.Close()
		case <-done:
		}
	}()
	return func() { close(done) }
}

// errStranger says that a connection is of somebody else on this machine.
var errStranger = errors.New("a connection without the token")

// greet reads the hello of a connection, which it closes on an error.
func greet(conn net.Conn, token string) (*session, error) {
	conn.SetReadDeadline(time.Now().Add(greetWithin))
	hello, err := readFrame(conn)
	switch {
	case err != nil || subtle.ConstantTimeCompare([]byte(hello.Token), []byte(token)) == 0:
		err = errStranger
	case hello.Type != "hello" || hello.Protocol != Protocol:
		WriteFrame(conn, refused{"refused", fmt.Sprintf("this node speaks protocol %d", Protocol)})
		err = fmt.Errorf("the learner began with %q of protocol %d; this node speaks protocol %d: install the atoll package that goes with this version", hello.Type, hello.Protocol, Protocol)
	default:
		conn.SetReadDeadline(time.Time{})
		return &session{conn: conn, hello: hello, over: make(chan struct{})}, nil
	}
	conn.Close()
	return nil, err
}

func (s *session) name() string { return s.hello.Name + " " + s.hello.Version }

// ended says why a learner does not answer, from what its connection came to.
func (s *session) ended(err error) error {
	closed := isClosed(err)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("it did not answer in time (%v; a leaver waits %v)%s", answerWithin, LeaveWithin, s.tail())
	case closed && s.process == nil:
		return fmt.Errorf("the script %s has ended, or closed its connection", s.name())
	case closed && s.process.gone():
		return fmt.Errorf("its process ended: %s", s.process.last())
	}
	return err
}

// tail are the last words, where the node hears them.
func (s *session) tail() string {
	if s.process == nil {
		return ""
	}
	return s.process.words.tail()
}

// stop asks the learner to end, and ends it where it does not and the node has started it.
func (s *session) stop() {
	s.conn.SetDeadline(time.Now().Add(stopWithin))
	if WriteFrame(s.conn, plain{"stop"}) == nil {
		readFrame(s.conn)
	}
	s.conn.Close()
	if s.process != nil {
		s.process.gone()
	}
	s.kill()
}

// kill lets go of the learner: the connection ends, and with it a process that the node has started.
func (s *session) kill() {
	s.conn.Close()
	if s.process != nil {
		s.process.kill()
	}
	s.once.Do(func() { close(s.over) })
}

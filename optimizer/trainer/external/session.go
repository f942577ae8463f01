package external

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
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

// mostGreeted bounds the connections that have yet to say hello: one more, and the one that has been
// silent longest has to go. So strangers that say nothing keep nobody out.
const mostGreeted = 16

// reception greets all that connect to a listener, each by itself.
type reception struct {
	listener net.Listener
	token    string
	arrivals chan arrival
	over     chan struct{} // closed by close

	mu     sync.Mutex
	silent []net.Conn // that have yet to say hello, the oldest first
	closed bool
}

// arrival is a learner that came with the token, or why there is none.
type arrival struct {
	session *session
	err     error
}

// errDeaf says that a listener takes no more connections.
var errDeaf = errors.New("nobody can connect any more")

func receive(l net.Listener, token string) *reception {
	r := &reception{listener: l, token: token, arrivals: make(chan arrival), over: make(chan struct{})}
	go r.accept()
	return r
}

func (r *reception) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			r.report(arrival{err: fmt.Errorf("%w: %w", errDeaf, err)})
			return
		}
		r.enter(conn)
		go r.greet(conn)
	}
}

// greet hears a connection. A stranger is closed without a word.
func (r *reception) greet(conn net.Conn) {
	s, err := greet(conn, r.token)
	r.leave(conn)
	if errors.Is(err, errStranger) {
		return
	}
	if !r.report(arrival{s, err}) {
		conn.Close()
	}
}

// report says whether somebody has taken an arrival.
func (r *reception) report(a arrival) bool {
	select {
	case r.arrivals <- a:
		return true
	case <-r.over:
		return false
	}
}

// next waits for a learner that knows the token. The error is errDeaf once the listener is closed.
func (r *reception) next() (*session, error) {
	a := <-r.arrivals
	return a.session, a.err
}

func (r *reception) enter(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		conn.Close()
		return
	}
	if len(r.silent) == mostGreeted {
		r.silent[0].Close()
		r.silent = r.silent[1:]
	}
	r.silent = append(r.silent, conn)
}

func (r *reception) leave(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = slices.DeleteFunc(r.silent, func(c net.Conn) bool { return c == conn })
}

// close ends the listener, and all connections that next has not returned.
func (r *reception) close() {
	close(r.over)
	r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, conn := range r.silent {
		conn.Close()
	}
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

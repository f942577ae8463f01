package web

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are in memory, so that their times are virtual.
type pipes struct {
	come  chan net.Conn
	close func() // of come, once
}

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.come
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error {
	p.close()
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7070} }

// inMemory runs a test against a server in virtual time. connect opens a connection.
func inMemory(t *testing.T, test func(s *Server, connect func() net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		feed, come := NewFeed(), make(chan net.Conn)
		l := pipes{come, sync.OnceFunc(func() { close(come) })}
		feed.Offer(oneNode(trainingStatus(40)))
		s := serveAt(l, feed, nil)
		test(s, func() net.Conn {
			ours, its := net.Pipe()
			l.come <- its
			return ours
		})
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

const openEvents = "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"

// A viewer that takes nothing is cut off, and its place is free.
func TestSlowReaderIsCutOff(t *testing.T) {
	inMemory(t, func(s *Server, connect func() net.Conn) {
		c := connect()
		defer c.Close()
		if _, err := io.WriteString(c, openEvents); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(s.viewers) != 1 {
			t.Fatalf("%d viewers, want 1", len(s.viewers))
		}
		time.Sleep(writeWithin + viewEvery)
		synctest.Wait()
		if len(s.viewers) != 0 {
			t.Errorf("after %v a viewer that reads nothing is still served", writeWithin+viewEvery)
		}
	})
}

// A stream of a world in which nothing happens stays open, and says so now and then.
func TestQuietStreamStaysOpen(t *testing.T) {
	inMemory(t, func(s *Server, connect func() net.Conn) {
		c := connect()
		if _, err := io.WriteString(c, openEvents); err != nil {
			t.Fatal(err)
		}
		lines, began := bufio.NewScanner(c), time.Now()
		lines.Buffer(nil, 1<<20)
		comments := 0
		for comments < 4 && lines.Scan() {
			if strings.HasPrefix(lines.Text(), ":") {
				comments++
			}
		}
		if took := time.Since(began); comments != 4 || took > 5*keepAlive {
			t.Errorf("%d signs of life in %v: %v", comments, took, lines.Err())
		}
		c.Close()
		time.Sleep(2 * keepAlive)
		synctest.Wait()
		if len(s.viewers) != 0 {
			t.Error("a viewer that has gone still has its place")
		}
	})
}

// A connection that asks for nothing, or never ends its header, is closed.
func TestSilentConnectionIsClosed(t *testing.T) {
	for name, text := range map[string]string{"nothing": "", "half a header": "GET /view HTTP/1.1\r\nHost: local"} {
		inMemory(t, func(_ *Server, connect func() net.Conn) {
			c, began := connect(), time.Now()
			defer c.Close()
			if _, err := io.WriteString(c, text); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, c) // until it is closed
			if took := time.Since(began); took > headerWithin+idleWithin {
				t.Errorf("%s: closed after %v", name, took)
			}
		})
	}
}

// A header that is too long is refused before it is kept.
func TestLongHeaderIsRefused(t *testing.T) {
	inMemory(t, func(_ *Server, connect func() net.Conn) {
		c := connect()
		defer c.Close()
		go func() {
			_, _ = io.WriteString(c, "GET /view HTTP/1.1\r\nHost: localhost\r\nX: "+strings.Repeat("x", 4*maxHeader)+"\r\n\r\n")
		}()
		answer, err := bufio.NewReader(c).ReadString('\n')
		if !strings.Contains(answer, "431") {
			t.Errorf("%q, %v", answer, err)
		}
	})
}

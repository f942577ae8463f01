package web

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/netutil"
	"rsc.io/qr"
)

// Limits on viewers. The page must not cost the node what training needs.
const (
	maxViewers      = 32               // open event streams: a team with the page on its screens
	maxConnections  = 128              // a browser opens up to six
	headerWithin    = 5 * time.Second  // a request's header
	writeWithin     = 10 * time.Second // one view, or one file: a reader that takes longer is cut off
	idleWithin      = time.Minute      // a connection without a request
	closeWithin     = 2 * time.Second  // for answers that are under way at the end
	maxHeader       = 16 << 10         // bytes of a request's header
	maxRequestBytes = 0                // of a request's body: nobody has anything to tell
	keepAlive       = 15 * time.Second // a stream without news says so, or proxies cut it
)

// policy lets the page load its own files and nothing else. Scripts and styles stand in
// files, so that no text that a peer sent can become one.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed static
var static embed.FS

// Server serves the page.
type Server struct {
	feed     *Feed
	http     *http.Server
	listener net.Listener
	token    string // "" on a loopback address
	session  string // value of the cookie of those who had the token
	viewers  chan struct{}
	end      context.CancelFunc
	done     chan error
}

// Serve starts a server of the page at addr, such as 127.0.0.1:7070, until Close. Port 0 is any
// free one. Handlers answer at the paths that more has for them, behind the same guard.
func Serve(addr string, feed *Feed, more map[string]http.Handler) (*Server, error) {
	if err := CheckAddr(addr); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("page at %s: %w; use 127.0.0.1:7070, or another address of this machine and a free port", addr, err)
	}
	return serveAt(l, feed, more), nil
}

// serveAt serves at a listener.
func serveAt(l net.Listener, feed *Feed, more map[string]http.Handler) *Server {
	s := &Server{feed: feed, listener: l, session: rand.Text(), viewers: make(chan struct{}, maxViewers), done: make(chan error, 1)}
	if !l.Addr().(*net.TCPAddr).IP.IsLoopback() {
		s.token = rand.Text()
	}
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	s.http = &http.Server{
		Handler: s.guard(s.routes(more)), ReadHeaderTimeout: headerWithin, IdleTimeout: idleWithin, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	go func() { s.done <- s.http.Serve(netutil.LimitListener(l, maxConnections)) }()
	return s
}

// CheckAddr refuses what is no HOST:PORT, and an address that names no host: that would be all of them.
func CheckAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("page at %q: it is no address with a port; use 127.0.0.1:7070 for this machine alone", addr)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("page at %q: %q is no port; use 127.0.0.1:7070 for this machine alone", addr, port)
	}
	if host == "" {
		return fmt.Errorf("page at %q: it names no host; use 127.0.0.1:%s for this machine alone, or 0.0.0.0:%s for all networks, behind a token", addr, port, port)
	}
	return nil
}

// URL is where to look, with the token if there is one. It lets anybody look.
func (s *Server) URL() string {
	u := url.URL{Scheme: "http", Host: reachable(s.listener.Addr().(*net.TCPAddr)), Path: "/"}
	if s.token != "" {
		u.RawQuery = url.Values{tokenParameter: {s.token}}.Encode()
	}
	return u.String()
}

// reachable is an address at which one gets to a listener: of one that listens on all
// networks, that of this machine on one of them.
func reachable(at *net.TCPAddr) string {
	if !at.IP.IsUnspecified() {
		return at.String()
	}
	host := "127.0.0.1"
	addrs, _ := net.InterfaceAddrs() // without them it is reachable from here
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			host = n.IP.String()
			break
		}
	}
	return net.JoinHostPort(host, strconv.Itoa(at.Port))
}

// Guarded says whether the page is behind a token.
func (s *Server) Guarded() bool { return s.token != "" }

// Close ends the server, its streams and its goroutine.
func (s *Server) Close() error {
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// Names of what lets a viewer in.
const (
	tokenParameter = "token"
	cookiePrefix   = "atoll-page-" // and the port: browsers give cookies to all ports of a host
)

func (s *Server) cookieName() string {
	return cookiePrefix + strconv.Itoa(s.listener.Addr().(*net.TCPAddr).Port)
}

// guard lets in who may look, and says what browsers may do with the answer.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin)) // a recorder in tests has none
		r.Body = http.MaxBytesReader(w, r.Body, maxRequestBytes)
		switch {
		case s.token == "" && !loopbackHost(r.Host):
			http.Error(w, "this page is at its loopback address alone", http.StatusMisdirectedRequest)
		case s.token != "" && !s.mayLook(w, r):
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "this page is for looking only", http.StatusMethodNotAllowed)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// loopbackHost says whether a request was made to a name of this machine itself. Any other
// name is that of a site which had the browser look it up here.
func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// mayLook says whether a request has the token or the cookie, and answers one that has neither.
// One that has the token in its address gets the cookie. It is not sent on to an address without
// the token: browsers keep a strict cookie from a page that a link on another site led to. The
// page drops the token from its address itself.
func (s *Server) mayLook(w http.ResponseWriter, r *http.Request) bool {
	if c, err := r.Cookie(s.cookieName()); err == nil && same(c.Value, s.session) {
		return true
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && same(bearer, s.token) {
		return true
	}
	if given := r.URL.Query().Get(tokenParameter); given != "" && same(given, s.token) {
		http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: s.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		return true
	}
	http.Error(w, "this page needs its token: open the whole address that atoll printed when it started", http.StatusUnauthorized)
	return false
}

// same compares in a time that does not depend on where the two differ.
func same(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// files are what the page consists of, by path.
var files = map[string]string{
	"/{$}":        "index.html",
	"/page.css":   "page.css",
	"/page.js":    "page.js",
	"/format.js":  "format.js",
	"/picture.js": "picture.js",
	"/icon.svg":   "icon.svg",
	"/uplot.js":   "uplot/uPlot.iife.min.js",
	"/uplot.css":  "uplot/uPlot.min.css",
}

func (s *Server) routes(more map[string]http.Handler) *http.ServeMux {
	m := http.NewServeMux()
	for at, name := range files {
		m.HandleFunc(at, func(w http.ResponseWriter, r *http.Request) { file(w, r, name) })
	}
	m.HandleFunc("/view", s.view)
	m.HandleFunc("/events", s.events)
	m.HandleFunc("/link", s.link)
	m.HandleFunc("/link.png", s.picture)
	for path, h := range more {
		m.Handle(path, h)
	}
	return m
}

func file(w http.ResponseWriter, r *http.Request, name string) {
	b, err := fs.ReadFile(static, "static/"+name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	http.ServeContent(w, r, path.Base(name), time.Time{}, bytes.NewReader(b))
}

// view answers with the newest view alone.
func (s *Server) view(w http.ResponseWriter, _ *http.Request) {
	view, _ := s.feed.Encoded()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(view) // the viewer may go away
}

// events is a stream of views as server-sent events. A viewer that falls behind gets the
// newest one next, and one that takes nothing is cut off.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.viewers <- struct{}{}:
		defer func() { <-s.viewers }()
	default:
		http.Error(w, fmt.Sprintf("%d viewers look at this page, which is the most", maxViewers), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := stream{w, http.NewResponseController(w)}
	tick := time.NewTicker(viewEvery)
	defer tick.Stop()
	var last uint64
	var said time.Time
	for {
		view, number := s.feed.Encoded()
		switch {
		case number != last:
			if out.send("data: ", view, "\n\n") != nil {
				return
			}
			last, said = number, time.Now()
		case time.Since(said) >= keepAlive:
			if out.send(":\n\n", nil, "") != nil {
				return
			}
			said = time.Now()
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// stream writes to one viewer.
type stream struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (s stream) send(before string, body []byte, after string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	for _, part := range [][]byte{[]byte(before), body, []byte(after)} {
		if _, err := s.Write(part); err != nil {
			return err
		}
	}
	return s.control.Flush()
}

// link answers with the join link. It is a secret where a run admits by invitation, so it is
// in no view, and asked for when somebody wants it. A second line says whom it lets in.
func (s *Server) link(w http.ResponseWriter, _ *http.Request) {
	link, letsIn := s.feed.World().link()
	if link == "" {
		http.Error(w, noLink, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(link + "\n" + letsIn)) // the viewer may go away
}

const noLink = "no node has a join link now"

// picture answers with the join link as a QR code.
func (s *Server) picture(w http.ResponseWriter, _ *http.Request) {
	link, _ := s.feed.World().link()
	if link == "" {
		http.Error(w, noLink, http.StatusNotFound)
		return
	}
	code, err := qr.Encode(link, qr.L) // the least redundancy: links are long, and screens have no scratches
	if err != nil {
		http.Error(w, "the join link is too long for a QR code", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "image/png")
	_, _ = w.Write(code.PNG()) // the viewer may go away
}

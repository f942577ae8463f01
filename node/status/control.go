package status

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"atoll/node/files"
)

// controlFile, in a node's folder, says where the running node answers: see way.
// It has the rights of the folder's owner.
const controlFile = "control"

// Limits of the control API.
const (
	maxSocketPath  = 100              // bytes: systems allow 104 to 108
	maxControlBody = 8 << 30          // of an answer: the tips of a large model
	controlTimeout = 10 * time.Second // of a request's header
	maxRevocation  = 1 << 20          // a signed header of each fragment and the reason, in JSON
	maxSet         = 1 << 20          // of settings: some lines
)

// ErrNotRunning says that no node runs on a folder, and ErrRunning that one does already.
var (
	ErrNotRunning = errors.New("no node is running on this folder")
	ErrRunning    = errors.New("a node runs on this folder already")
)

// ErrStarting says that a node has yet to find what it needs before it takes part.
var ErrStarting = errors.New("the node is starting")

// Handlers is what a node answers.
type Handlers struct {
	Snapshot func() (Snapshot, bool)                                // false: not ready yet, so only what it has and does is known
	Tips     func() (io.WriterTo, bool)                             // the newest tips of all fragments
	Lend     func() (index []byte, done func(), err error)          // its index, see store.Store.Lend
	Members  func() []Member                                        // who was admitted, in a run that admits by invitation
	Leave    func()                                                 // begins an ordered leave
	Revoke   func(context.Context, Revocation) error                // spreads what an owner of the run signed
	Pause    func(on bool)                                          // has the node pause, or go on where nothing else keeps it
	Set      func(context.Context, []byte) (note string, err error) // changes settings, from JSON that is the node's; for people
}

// Server is the local control API of one node.
type Server struct {
	http *http.Server
	way  way
	file string // that says where it answers
	done chan error
}

// Serve starts the control API of the node on dir.
func Serve(dir string, h Handlers) (*Server, error) { return ServeBeside(dir, controlFile, mux(h)) }

// ServeBeside answers other questions at a socket of its own. A file of this name in the folder says where.
func ServeBeside(dir, name string, h http.Handler) (*Server, error) {
	return serveAt(defaultNetwork(), dir, name, h)
}

func serveAt(network, dir, name string, h http.Handler) (*Server, error) {
	file := filepath.Join(dir, name)
	if answers(dir, name) {
		return nil, fmt.Errorf("%s: %w: end it with `atoll leave %s`", dir, ErrRunning, ShellWord(dir))
	}
	if err := removeStale(file); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	w, l, err := openWay(network, file)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(w.text()), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), l.Close(), w.remove())
	}
	s := &Server{way: w, file: file, done: make(chan error, 1)}
	s.http = &http.Server{Handler: w.guard(h), ReadHeaderTimeout: controlTimeout}
	go func() { s.done <- s.http.Serve(l) }()
	return s, nil
}

// answersWithin is how long one on this machine may take to say that it is there.
const answersWithin = time.Second

// answers reports whether another process answers there.
func answers(dir, name string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), answersWithin)
	defer cancel()
	_, err := Beside(dir, name).do(ctx, http.MethodGet, "/", nil)
	return err == nil || !errors.Is(err, ErrNotRunning) && !errors.Is(err, fs.ErrPermission)
}

// socketSuffix is what a socket's name has behind that of the file which says where it is. If
// its path beside that would be too long, it is in a temporary folder whose name begins with tempPrefix.
const (
	socketSuffix = ".sock"
	tempPrefix   = "atoll-control-"
)

// socketPath is beside the file, or in a folder for temporary files where that
// path would be too long for a socket.
func socketPath(file string) (string, error) {
	abs, err := filepath.Abs(file + socketSuffix)
	if err != nil {
		return "", fmt.Errorf("control socket: %w", err)
	}
	if len(abs) <= maxSocketPath {
		return abs, nil
	}
	tmp, err := os.MkdirTemp("", tempPrefix)
	if err != nil {
		return "", fmt.Errorf("control socket: %w", err)
	}
	return filepath.Join(tmp, filepath.Base(abs)), nil
}

// removeStale removes what a killed node left.
func removeStale(file string) error {
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err = removeSocket(file + socketSuffix)
	if said := strings.TrimSpace(string(b)); filepath.Base(said) == filepath.Base(file)+socketSuffix { // it is one of ours
		err = errors.Join(err, removeSocket(said))
	}
	return err
}

// removeSocket removes a socket and the folder that was made for it.
func removeSocket(path string) error {
	err := os.Remove(path)
	if tmp := filepath.Dir(path); strings.HasPrefix(filepath.Base(tmp), tempPrefix) {
		err = errors.Join(err, os.Remove(tmp))
	}
	return gone(err)
}

// gone is nil if all that failed is removing what is not there.
func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func mux(h Handlers) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		s, ok := h.Snapshot()
		w.Header().Set("Content-Type", "application/json")
		if !ok {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(s) // the reader may go away
	})
	m.HandleFunc("GET /tips", func(w http.ResponseWriter, _ *http.Request) {
		t, ok := h.Tips()
		if !ok {
			http.Error(w, ErrStarting.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = t.WriteTo(w)
	})
	m.HandleFunc("GET /index", func(w http.ResponseWriter, r *http.Request) { lend(w, r, h.Lend) })
	m.HandleFunc("GET /members", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(h.Members()) // the reader may go away
	})
	m.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		var v Revocation
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRevocation)).Decode(&v)
		if err == nil {
			err = h.Revoke(r.Context(), v)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		}
	})
	m.HandleFunc("POST /set", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSet))
		if err == nil {
			var note string
			if note, err = h.Set(r.Context(), b); err == nil {
				_, _ = io.WriteString(w, note) // the asker may go away
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		}
	})
	m.HandleFunc("POST /leave", func(w http.ResponseWriter, _ *http.Request) {
		h.Leave()
		w.WriteHeader(http.StatusAccepted)
	})
	for path, on := range map[string]bool{"POST /pause": true, "POST /resume": false} {
		m.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			h.Pause(on)
			w.WriteHeader(http.StatusAccepted)
		})
	}
	return m
}

// lend sends an index behind its length. The loan lasts until the asker hangs up.
func lend(w http.ResponseWriter, r *http.Request, of func() (index []byte, done func(), err error)) {
	index, done, err := of()
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	defer done()
	_, err = w.Write(binary.BigEndian.AppendUint64(nil, uint64(len(index))))
	if err == nil {
		_, err = w.Write(index)
	}
	if err == nil && http.NewResponseController(w).Flush() == nil {
		<-r.Context().Done()
	}
}

// Close ends the API and waits for its goroutine.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return errors.Join(err, s.way.remove(), gone(files.Remove(s.file)))
}

// Client asks the node that runs on a folder, also one that was started after another.
type Client struct{ dir, name string }

// Dial finds the node that runs on dir. It is ErrNotRunning if there is none, or one
// that is just writing down where it answers.
func Dial(dir string) (*Client, error) {
	_, err := wayTo(dir, controlFile)
	if err != nil {
		return nil, err
	}
	return Beside(dir, controlFile), nil
}

// Beside asks what answers by ServeBeside under this name.
func Beside(dir, name string) *Client { return &Client{dir, name} }

// wayTo is where what has this name on dir says that it answers.
func wayTo(dir, name string) (way, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	w, whole := parseWay(string(b))
	if err == nil && whole {
		return w, nil
	}
	return w, noWay(dir, err)
}

// noWay says why a node cannot be asked. One of another user may well run.
func noWay(dir string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s is of another user: run this as the user that started the node: %w", dir, err)
	}
	return fmt.Errorf("%s: %w", dir, ErrNotRunning)
}

// Died reports of a folder on which no node runs whether the last one there did not end in order:
// it was killed, or its machine lost power. One that ends in order removes what says where it answers.
func Died(dir string) bool {
	_, err := wayTo(dir, controlFile)
	return err == nil
}

// Snapshot returns the node's newest status. With ErrStarting it has no more than settings and stage.
func (c *Client) Snapshot(ctx context.Context) (s Snapshot, err error) {
	body, err := c.do(ctx, http.MethodGet, "/status", nil)
	if err != nil && !errors.Is(err, ErrStarting) {
		return s, err
	}
	if wrong := c.read("/status", body, &s); wrong != nil {
		return s, wrong
	}
	if err != nil && s.Stage != "" {
		err = fmt.Errorf("%w: %s", err, Printable(s.Stage))
	}
	return s, err
}

// Members returns who was admitted to the node's run, as far as the node knows.
func (c *Client) Members(ctx context.Context) (members []Member, err error) {
	body, err := c.do(ctx, http.MethodGet, "/members", nil)
	if err != nil {
		return nil, err
	}
	return members, c.read("/members", body, &members)
}

// read reads an answer in JSON.
func (c *Client) read(path string, body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("answer of the node on %s to %s: %w", c.dir, path, err)
	}
	return nil
}

// Index is the index that the running node lends, see store.Store.Lend. The loan lasts until done.
func (c *Client) Index(ctx context.Context) (index []byte, done func(), err error) {
	body, err := c.open(ctx, http.MethodGet, "/index", nil)
	if err != nil {
		return nil, nil, err
	}
	var size uint64
	if err = binary.Read(body, binary.BigEndian, &size); err == nil && size > maxControlBody {
		err = fmt.Errorf("%d bytes", size)
	}
	if err == nil {
		index = make([]byte, size)
		_, err = io.ReadFull(body, index)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("the index of the node on %s: %w", c.dir, err), body.Close())
	}
	return index, func() { _ = body.Close() }, nil // there is nothing more to read
}

// Tips returns the encoded newest tips of the node.
func (c *Client) Tips(ctx context.Context) ([]byte, error) {
	return c.do(ctx, http.MethodGet, "/tips", nil)
}

// Revoke has the node spread what an owner of the run signed.
func (c *Client) Revoke(ctx context.Context, v Revocation) error {
	_, err := c.Post(ctx, "/revoke", v)
	return err
}

// Set has the node take settings, in the form that its Handlers.Set reads, and returns its note.
func (c *Client) Set(ctx context.Context, settings any) (note string, err error) {
	b, err := c.Post(ctx, "/set", settings)
	return string(b), err
}

// Post sends a body in JSON, and returns the answer.
func (c *Client) Post(ctx context.Context, path string, body any) ([]byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return c.do(ctx, http.MethodPost, path, bytes.NewReader(b))
}

// Leave asks the node to leave in order.
func (c *Client) Leave(ctx context.Context) error {
	_, err := c.do(ctx, http.MethodPost, "/leave", nil)
	return err
}

// Pause asks the node to pause, or to go on where nothing else keeps it.
func (c *Client) Pause(ctx context.Context, on bool) error {
	path := "/resume"
	if on {
		path = "/pause"
	}
	_, err := c.do(ctx, http.MethodPost, path, nil)
	return err
}

// do is open, and the whole answer.
func (c *Client) do(ctx context.Context, method, path string, request io.Reader) ([]byte, error) {
	answer, err := c.open(ctx, method, path, request)
	if answer == nil {
		return nil, err
	}
	defer answer.Close()
	body, wrong := io.ReadAll(io.LimitReader(answer, maxControlBody))
	if wrong != nil {
		return nil, fmt.Errorf("ask the node on %s: %w", c.dir, wrong)
	}
	return body, err
}

// open sends a request. The answer is there as well with ErrStarting, for then the node may say more.
func (c *Client) open(ctx context.Context, method, path string, request io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://node"+path, request)
	if err != nil {
		return nil, err
	}
	w, err := wayTo(c.dir, c.name)
	if err != nil {
		return nil, err
	}
	res, err := w.do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("ask the node on %s: %w", c.dir, ctx.Err())
		}
		return nil, fmt.Errorf("%s: %w (%v)", c.dir, ErrNotRunning, err)
	}
	if res.StatusCode == http.StatusServiceUnavailable {
		return res.Body, fmt.Errorf("ask the node on %s: %w", c.dir, ErrStarting)
	}
	if res.StatusCode < 300 {
		return res.Body, nil
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, maxSet))
	return nil, errors.Join(fmt.Errorf("ask the node on %s: %s", c.dir, strings.TrimSpace(string(said))), err)
}

package status

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
)

// way is how a node is asked: at a Unix socket, to which the rights of the file let its owner
// alone, or at a port of this machine with a token. Windows has no such rights for sockets.
type way struct {
	network string // "unix" or "tcp"
	address string
	token   string // of "tcp"
}

// defaultNetwork is the network of this system's ways.
func defaultNetwork() string {
	if runtime.GOOS == "windows" {
		return "tcp"
	}
	return "unix"
}

// openWay begins to listen; file is to say where.
func openWay(network, file string) (way, net.Listener, error) {
	w := way{network: network}
	if network == "tcp" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return w, nil, fmt.Errorf("control port: %w", err)
		}
		w.address, w.token = l.Addr().String(), rand.Text()
		return w, l, nil
	}
	socket, err := socketPath(file)
	if err != nil {
		return w, nil, err
	}
	w.address = socket
	l, err := net.Listen("unix", socket)
	if err != nil {
		return w, nil, fmt.Errorf("control socket %s: %w", socket, err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return w, nil, errors.Join(fmt.Errorf("control socket %s: %w", socket, err), l.Close())
	}
	return w, l, nil
}

// text is the content of the control file: the path of a socket, or "tcp ADDRESS TOKEN". The
// newline says that it is whole.
func (w way) text() string {
	if w.network == "tcp" {
		return "tcp " + w.address + " " + w.token + "\n"
	}
	return w.address + "\n"
}

// parseWay reads what text wrote.
func parseWay(text string) (w way, ok bool) {
	line, whole := strings.CutSuffix(text, "\n")
	if !whole {
		return w, false
	}
	if address, token, both := strings.Cut(strings.TrimPrefix(line, "tcp "), " "); both && strings.HasPrefix(line, "tcp ") {
		return way{"tcp", address, token}, true
	}
	return way{network: "unix", address: line}, true
}

// bearer is what a request has in its header before the token.
const bearer = "Bearer "

// do sends a request to the node, with the token.
func (w way) do(req *http.Request) (*http.Response, error) {
	if w.token != "" {
		req.Header.Set("Authorization", bearer+w.token)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, w.network, w.address)
	}
	// Without keep-alives there is nothing to close after a request.
	return (&http.Transport{DialContext: dial, DisableKeepAlives: true}).RoundTrip(req)
}

// guard lets those through who say the token.
func (w way) guard(h http.Handler) http.Handler {
	if w.token == "" {
		return h
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		said := req.Header.Get("Authorization")
		if subtle.ConstantTimeCompare([]byte(said), []byte(bearer+w.token)) != 1 {
			http.Error(rw, "the token of the node's folder is missing", http.StatusForbidden)
			return
		}
		h.ServeHTTP(rw, req)
	})
}

// remove removes what the way has left on disk.
func (w way) remove() error {
	if w.network == "tcp" {
		return nil
	}
	return removeSocket(w.address)
}

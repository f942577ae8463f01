// Package controls is how a testnet steers the processes that it starts. What harms real networks,
// machines and memories is done to them on demand, at a socket of their own beside the control socket.
package controls

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"atoll/gossip/wire"
	"atoll/node/status"
	"atoll/testnet/shaping"
)

// Controls is what may be done to a process. One that is nil it refuses.
type Controls struct {
	// Block cuts the connections to these peers at once and refuses new ones, both
	// ways, until it is called again: it replaces the set before.
	Block func(peers []wire.PeerID) error
	// Pace sets the least time of an inner step from now on.
	Pace func(least time.Duration) error
	// Uphill has the learner step away from where it should from now on, as one that lies or is broken.
	Uphill func(on bool) error
	// Corrupt flips a bit of the newest anchor in memory.
	Corrupt func(at BitFlip) error
	// Link makes the process's link another.
	Link func(link shaping.Link) error
}

// BitFlip names one bit of one value of the newest anchor of a fragment. It is
// there to see that the run notices a damaged memory, names whose it is, and
// mends it.
type BitFlip struct {
	Fragment int `json:"fragment"`
	Value    int `json:"value"` // of the fragment, from 0
	Bit      int `json:"bit"`   // 0 to 22: of the mantissa, so that the value stays finite
}

// MantissaBits are the bits of a float32 that a BitFlip may name.
const MantissaBits = 23

// name is the file in a process's folder that says where its controls are.
const name = "controls"

// maxBody bounds a request: the ids of all peers that a node knows.
const maxBody = 1 << 20

// Serve offers the controls of the process on dir.
func Serve(dir string, c Controls) (*status.Server, error) {
	m := http.NewServeMux()
	m.HandleFunc("POST /block", control(c.Block))
	m.HandleFunc("POST /pace", control(c.Pace))
	m.HandleFunc("POST /uphill", control(c.Uphill))
	m.HandleFunc("POST /corrupt", control(c.Corrupt))
	m.HandleFunc("POST /link", control(c.Link))
	return status.ServeBeside(dir, name, m)
}

// control answers requests whose body is a T in JSON.
func control[T any](do func(T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request T
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&request)
		switch {
		case do == nil:
			err = errors.New("this process has no such control: " + r.URL.Path)
		case err == nil:
			err = do(request)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// Client steers the process on a folder.
type Client struct{ Dir string }

// Block parts the process from these peers and no others; see Controls.
func (c Client) Block(ctx context.Context, peers []wire.PeerID) error {
	return c.post(ctx, "/block", peers)
}

// Pace sets the least time of an inner step; see Controls.
func (c Client) Pace(ctx context.Context, least time.Duration) error {
	return c.post(ctx, "/pace", least)
}

// Uphill has the learner step away from where it should; see Controls.
func (c Client) Uphill(ctx context.Context, on bool) error { return c.post(ctx, "/uphill", on) }

// Corrupt flips a bit in the process's memory; see Controls.
func (c Client) Corrupt(ctx context.Context, at BitFlip) error { return c.post(ctx, "/corrupt", at) }

// Link makes the process's link another; see Controls.
func (c Client) Link(ctx context.Context, link shaping.Link) error { return c.post(ctx, "/link", link) }

func (c Client) post(ctx context.Context, path string, body any) error {
	return status.Beside(c.Dir, name).Post(ctx, path, body)
}

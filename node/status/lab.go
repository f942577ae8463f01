package status

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Lab is what a laboratory may do to a node: harm that real networks, machines
// and memories do, on demand. A node has it only if it was started with --lab.
type Lab struct {
	// Block cuts the connections to these peers (ids in hex) at once and refuses
	// new ones, both ways, until it is called again: it replaces the set before.
	Block func(peers []string) error
	// Pace sets the least time of an inner step from now on.
	Pace func(least time.Duration) error
	// Uphill has the learner step away from where it should from now on, as one that lies or is broken.
	Uphill func(on bool) error
	// Corrupt flips a bit of the newest anchor in memory.
	Corrupt func(at BitFlip) error
	// Link makes the node's link another, such as rate=5mbit,delay=40ms.
	Link func(link string) error
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

// blockRequest, paceRequest, uphillRequest and linkRequest are the bodies of requests.
type (
	blockRequest struct {
		Peers []string `json:"peers"`
	}
	paceRequest struct {
		Pace time.Duration `json:"pace_ns"`
	}
	uphillRequest struct {
		On bool `json:"on"`
	}
	linkRequest struct {
		Link string `json:"link"`
	}
)

// maxLabBody bounds a request: the ids of all peers that a node knows.
const maxLabBody = 1 << 20

// noLab is what a node without a laboratory answers.
const noLab = "this node takes no laboratory controls: it was not started with --lab"

// addTo adds the laboratory's controls to the API.
func (l *Lab) addTo(m *http.ServeMux) {
	if l == nil {
		m.HandleFunc("POST /lab/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, noLab, http.StatusForbidden) })
		return
	}
	m.HandleFunc("POST /lab/block", control(func(r blockRequest) error { return l.Block(r.Peers) }))
	m.HandleFunc("POST /lab/pace", control(func(r paceRequest) error { return l.Pace(r.Pace) }))
	m.HandleFunc("POST /lab/uphill", control(func(r uphillRequest) error { return l.Uphill(r.On) }))
	m.HandleFunc("POST /lab/link", control(func(r linkRequest) error { return l.Link(r.Link) }))
	m.HandleFunc("POST /lab/corrupt", control(l.Corrupt))
}

// control answers requests whose body is a T in JSON.
func control[T any](do func(T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request T
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLabBody)).Decode(&request)
		if err == nil {
			err = do(request)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// Block parts the node from these peers and no others; see Lab.
func (c *Client) Block(ctx context.Context, peers []string) error {
	return c.post(ctx, "/lab/block", blockRequest{peers})
}

// Pace sets the least time of an inner step; see Lab.
func (c *Client) Pace(ctx context.Context, least time.Duration) error {
	return c.post(ctx, "/lab/pace", paceRequest{least})
}

// Uphill has the node's learner step away from where it should; see Lab.
func (c *Client) Uphill(ctx context.Context, on bool) error {
	return c.post(ctx, "/lab/uphill", uphillRequest{on})
}

// Corrupt flips a bit in the node's memory; see Lab.
func (c *Client) Corrupt(ctx context.Context, at BitFlip) error {
	return c.post(ctx, "/lab/corrupt", at)
}

// Link makes the node's link another; see Lab.
func (c *Client) Link(ctx context.Context, link string) error {
	return c.post(ctx, "/lab/link", linkRequest{link})
}

func (c *Client) post(ctx context.Context, path string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("ask the node on %s: %w", c.dir, err)
	}
	_, err = c.do(ctx, http.MethodPost, path, bytes.NewReader(b))
	return err
}

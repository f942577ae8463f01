// Package controls is how a testnet steers the processes that it starts: what harms real networks, machines
// and memories is done to them on demand, at a socket of their own beside the control socket.
package controls

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"atoll/gossip/wire"
	"atoll/node/status"
	"atoll/testnet/shaping"
)

// Orders are how a process is to be from now on. They replace those before.
type Orders struct {
	Pace             time.Duration // least time of an inner step
	Block            []wire.PeerID // no connection to these, either way
	Link             shaping.Link  // what its link is like, where it has a shape
	InvertedGradient bool          // its learner steps away from where it should, as one that lies or is broken
}

// BitFlip names one bit of one value of the newest global parameters of a fragment. It is there to see that
// the run notices a damaged memory, names whose it is, and mends it.
type BitFlip struct {
	Fragment int
	Value    int // of the fragment, from 0
	Bit      int // 0 to 22: of the mantissa, so that the value stays finite
}

// MantissaBits are the bits of a float32 that a BitFlip may name.
const MantissaBits = 23

// name is the file in a process's folder that says where its controls are.
const name = "controls"

// maxBody bounds a request: the ids of all peers that a node knows.
const maxBody = 1 << 20

// Serve has the process on dir obey.
func Serve(dir string, obey func(Orders) error, corrupt func(BitFlip) error) (*status.Server, error) {
	m := http.NewServeMux()
	m.HandleFunc("POST /orders", control(obey))
	m.HandleFunc("POST /corrupt", control(corrupt))
	return status.ServeBeside(dir, name, m)
}

// control answers requests whose body is a T in JSON.
func control[T any](do func(T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request T
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&request)
		if err == nil {
			err = do(request)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}

// Order tells the process on dir how to be.
func Order(ctx context.Context, dir string, o Orders) error {
	_, err := status.Beside(dir, name).Post(ctx, "/orders", o)
	return err
}

// Corrupt flips a bit in the memory of the process on dir.
func Corrupt(ctx context.Context, dir string, at BitFlip) error {
	_, err := status.Beside(dir, name).Post(ctx, "/corrupt", at)
	return err
}

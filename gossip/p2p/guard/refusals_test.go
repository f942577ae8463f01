package guard

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

func TestRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, reason := NewRefusals(), errors.New("broken handshake")
		r.Put("first", reason, time.Minute)
		for i := range maxRefusals {
			time.Sleep(time.Microsecond)
			r.Put(peer.ID(fmt.Sprint(i)), reason, time.Minute)
		}
		if len(r.byID) != maxRefusals || r.Get("first") != nil {
			t.Errorf("%d remembered, want %d without the oldest", len(r.byID), maxRefusals)
		}
	})
}

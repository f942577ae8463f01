package p2p

import (
	"fmt"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/p2p/guard"
)

// A whole household dials from one address, by two transports each, and some again.
func TestConnectionsOfOneAddress(t *testing.T) {
	resources, err := newResources()
	if err != nil {
		t.Fatal(err)
	}
	defer resources.Close()
	from := ma.StringCast("/ip4/5.0.0.1/tcp/1")
	open := func() network.ConnManagementScope {
		s, err := resources.OpenConnection(network.DirInbound, true, from)
		if err != nil {
			return nil
		}
		return s
	}
	var held []network.ConnManagementScope
	for s := open(); s != nil; s = open() {
		held = append(held, s)
	}
	if len(held) != guard.ConnsAddress {
		t.Errorf("%d connections of one address at once, want %d", len(held), guard.ConnsAddress)
	}
	for _, s := range held {
		s.Done()
	}
	count := len(held)
	for s := open(); s != nil && count < 10*connsBurst; s = open() {
		s.Done()
		count++
	}
	if count < connsBurst-connsRate || count > 2*connsBurst {
		t.Errorf("%d connections of one address within a moment, want about %d", count, connsBurst)
	}
}

// The resource manager has room for all streams that strangers may have together, and for members beside them.
func TestRoomForStreamsOfStrangers(t *testing.T) {
	r, err := newResources()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for n := range guard.StrangersStreams + streamsPeer {
		if _, err := r.OpenStream(peer.ID(fmt.Sprint(n/guard.StrangerStreams)), network.DirInbound); err != nil {
			t.Fatalf("stream %d: %v", n, err)
		}
	}
}

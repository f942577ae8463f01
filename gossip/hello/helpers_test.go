package hello

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

// testRecord is the record of the node that holds testKey(n).
func testRecord(n byte) Record {
	return Record{
		Protocol: Protocol, Run: wire.RunID{1, 2, 3}, Author: wire.PeerIDOf(testKey(n)), Seq: 2,
		Role: Learner, Trainer: Builtin,
		Devices:         []Device{{Kind: "cpu", Name: "Xeon (AVX-512)", Count: 2, MemoryBytes: 8 << 30}},
		TokensPerSecond: 12000, TokensPerStep: 512, Precision: "f32", MemoryBytes: 8 << 30,
		Addrs: []string{"/ip4/127.0.0.1/tcp/4001", "/dns4/example.org/udp/4001/quic-v1"},
		Agent: "atoll/0.1.0", StartedMs: 1767225600000,
	}
}

// largestRecord has every string and list at its limit.
func largestRecord() Record {
	r := testRecord(1)
	r.Agent = strings.Repeat("a", MaxString)
	r.Name, r.Devices = strings.Repeat("n", MaxString), nil
	for range MaxDevices {
		r.Devices = append(r.Devices, Device{Kind: "cuda", Name: strings.Repeat("n", MaxString), Count: MaxDeviceCount, MemoryBytes: 1 << 63})
	}
	return r
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// drawRecord draws a valid record of the node that holds testKey(n).
func drawRecord(t *rapid.T, n byte) Record {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abcÅß漢/ .-_0")), 0, 16, MaxString)
	rate := rapid.Float64Range(0, MaxRate)
	r := Record{
		Protocol: rapid.Uint32Range(Protocol, Protocol+1).Draw(t, "protocol"),
		Run:      wire.RunID{rapid.ByteRange(1, 2).Draw(t, "run")},
		Author:   wire.PeerIDOf(testKey(n)),
		Seq:      rapid.Uint64().Draw(t, "seq"),
		Role:     Observer,
		Devices:  []Device{},

		TokensPerSecond: rate.Draw(t, "tokens per second"),
		TokensPerStep:   rapid.Uint64().Draw(t, "tokens per step"),
		MemoryBytes:     rapid.Uint64().Draw(t, "memory"),
		Addrs:           rapid.SliceOfN(rapid.SampledFrom(testRecord(n).Addrs), 0, MaxAddrs).Draw(t, "addrs"),
		Agent:           word.Draw(t, "agent"),
		Name:            word.Draw(t, "name of the machine"),
		StartedMs:       rapid.Int64Range(0, 1<<62).Draw(t, "started"),
	}
	for range rapid.IntRange(0, MaxDevices).Draw(t, "devices") {
		r.Devices = append(r.Devices, Device{
			Kind: word.Draw(t, "kind"), Name: word.Draw(t, "name"),
			Count: rapid.IntRange(1, MaxDeviceCount).Draw(t, "count"), MemoryBytes: rapid.Uint64().Draw(t, "device memory"),
		})
	}
	if rapid.Bool().Draw(t, "learner") {
		r.Role = Learner
		r.Trainer = rapid.SampledFrom([]string{Builtin, External}).Draw(t, "trainer")
		r.Precision = rapid.SampledFrom([]string{"f32", "bf16", "f16", "int8"}).Draw(t, "precision")
	}
	return r
}

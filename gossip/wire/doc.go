// Package wire turns everything that travels between nodes into bytes and
// back: gossip messages, requests and answers on streams, and the limits on
// each.
//
// It is pure: no I/O of its own (the frame helpers read and write what they
// are given), no clock, no randomness. Every decoder checks version, length
// and counts before it allocates. It accepts exactly one encoding of each
// value, so equal values have equal bytes and equal hashes. Heartbeats are the
// exception: nobody hashes them, and a later version may add keys to them.
//
// A gossip message is a version byte, a kind byte and a body:
//
//	header              signed header (187 bytes, fixed) and, if it fits, the payload
//	heartbeat           CBOR map and a 64-byte signature over those very bytes
//	equivocation proof  two signed headers, the smaller first
//
// A request is a version byte, a kind byte and the kind's CBOR fields; an
// answer is a status byte and the kind's body. CBOR is RFC 8949 core
// deterministic encoding, structures as arrays, heartbeats as maps.
//
// Signatures are ed25519 over domain, RunID and bytes: one made for a header
// never passes for a heartbeat, and one made in a run never passes in another.
//
// Files, each may use those above it:
//
//	types                 names and digests
//	errors                what can be wrong with bytes
//	cbor                  the one encoding of each value
//	sign                  domains of signatures and hashes
//	frame                 bytes with their length
//	limits, header, part  bounds that need the sizes of headers and parts, and those
//	revocation            an owner's statement as a header
//	manifest              the tips that a node serves
//	equivocation, heartbeat, message  messages of gossip
//	request, response     what goes over streams
package wire

// Package guard bounds what peers may take whose keys cost nothing: streams of strangers (strangers.go), a relay's slots
// (slots.go), slots of anything (shares.go) and messages that go no further (surplus.go); and it remembers whom this node has
// refused (refusals.go) or shall have nothing to do with (block.go). Bounds count for the key and for where it comes from
// (origin.go). It knows keys and addresses, and neither hosts nor what is said: who has passed the handshake it asks.
package guard

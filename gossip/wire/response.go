package wire

// Status is the first byte of every answer.
type Status uint8

// Statuses. All but OK have no body.
const (
	OK       Status = iota + 1
	NotFound        // ask another
	Busy            // ask later
	Refused         // do not ask again
)

// Response is one answer on a stream.
type Response struct {
	Status Status
	Body   []byte
}

// RangeAnswer tells what a node holds of one Range.
type RangeAnswer struct {
	_ struct{} `cbor:",toarray"`

	Closed uint32   // last closed round of the fragment
	Base   uint32   // oldest round that it can still refold from
	Chain  Digest   // chain digest at From-1; zero if unknown
	State  Digest   // state digest at From-1; zero if unknown
	Sets   []Digest // SetDigest of From, From+1, ... up to To or the last round with a delta
}

// Manifest lists the tips that a node serves, all of one moment and one chain.
type Manifest struct {
	_ struct{} `cbor:",toarray"`

	Author    PeerID
	Fragments []FragmentManifest // in order of fragment
}

// FragmentManifest is the tip of one fragment.
type FragmentManifest struct {
	_ struct{} `cbor:",toarray"`

	Round  uint32   // the tip's round
	Closed uint32   // last round that the author had closed; at least Round
	Chain  Digest   // chain digest at Round
	State  Digest   // state digest at Round
	Size   uint64   // bytes of the encoded tip
	Chunks []Digest // BLAKE3 of each ChunkSize bytes of it
}

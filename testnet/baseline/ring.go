package baseline

import (
	"encoding/binary"
	"fmt"
	"math"

	"atoll/testnet/baseline/lockstep"
)

// Ring is one member's part of a ring all-reduce: afterwards all members hold the
// sum of their vectors, with equal bits. It is arithmetic alone: frames go to the
// member's successor and come from its predecessor, in the order in which they were
// made.
//
// A vector is cut into buckets, which go around independently, each as soon as it is
// contributed. A bucket is cut into as many chunks as there are members. In hop h,
// member i sends chunk i-h and receives chunk i-1-h. In the first n-1 hops
// (reduce-scatter) it adds what it receives to its own. So member i ends with the whole
// sum of chunk i+1. In the other n-1 hops (all-gather) it takes what it receives. So
// each member sends 2(n-1)/n of the vector (P. Patarasuk and X. Yuan, Bandwidth optimal
// all-reduce algorithms for clusters of workstations, 2009).
//
// Values travel as bfloat16 and are added as float32. The whole sum is rounded to
// bfloat16 where it is first known, at that member as well: hence the equal bits.
type Ring struct {
	self, n int
	buckets []bucket
	left    int // buckets that are not summed yet
}

// bucket is a part of the vector on its way around.
type bucket struct {
	size   int
	values []float32 // [size], the sum so far; nil before it is contributed
	hop    int       // next to be received
	early  [][]byte  // payloads of the hops from there on that came before the contribution
}

// Frame is what a member sends in one hop of one bucket.
type Frame struct {
	Bucket, Hop int
	Payload     []byte // bfloat16, little-endian
}

// NewRing is the part of member self, 0 to n-1 in the order of the ring, for a vector
// of buckets of these sizes.
func NewRing(self, n int, sizes []int) *Ring {
	r := &Ring{self: self, n: n, left: len(sizes)}
	for _, size := range sizes {
		r.buckets = append(r.buckets, bucket{size: size})
	}
	return r
}

// Hops is how many frames of each bucket a member sends, and receives.
func (r *Ring) Hops() int { return 2 * (r.n - 1) }

// Done says whether the whole vector is summed.
func (r *Ring) Done() bool { return r.left == 0 }

// PayloadSize is how many bytes the payload of a frame has that the predecessor sends.
// It is an error if there is no such frame.
func (r *Ring) PayloadSize(bucket, hop int) (int, error) {
	if bucket < 0 || bucket >= len(r.buckets) || hop < 0 || hop >= r.Hops() {
		return 0, fmt.Errorf("bucket %d, hop %d: there are %d buckets and %d hops", bucket, hop, len(r.buckets), r.Hops())
	}
	lo, hi := r.chunk(bucket, r.self-1-hop)
	return bytesPerValue * (hi - lo), nil
}

// chunk is the part of a bucket that chunk c is, c modulo the number of members.
func (r *Ring) chunk(bucket, c int) (lo, hi int) {
	c = ((c % r.n) + r.n) % r.n
	size := r.buckets[bucket].size
	return c * size / r.n, (c + 1) * size / r.n
}

// Contribute adds this member's values of a bucket, once. They become the sum in place.
// It returns the frames to send.
func (r *Ring) Contribute(b int, values []float32) []Frame {
	k := &r.buckets[b]
	if k.values != nil || len(values) != k.size {
		panic(fmt.Sprintf("ring: %d values for bucket %d of %d, or for the second time", len(values), b, k.size))
	}
	if k.values = values; k.values == nil {
		k.values = []float32{}
	}
	if r.n == 1 {
		r.left--
		return nil
	}
	out := []Frame{r.frame(b, 0)}
	early := k.early
	k.early = nil
	for _, payload := range early {
		out = append(out, r.apply(b, payload)...)
	}
	return out
}

// Receive takes a frame from the predecessor and returns the frames to send. A frame
// that this ring cannot expect now is an error, and changes nothing.
func (r *Ring) Receive(f Frame) ([]Frame, error) {
	size, err := r.PayloadSize(f.Bucket, f.Hop)
	if err != nil {
		return nil, err
	}
	k := &r.buckets[f.Bucket]
	if next := k.hop + len(k.early); f.Hop != next {
		return nil, fmt.Errorf("bucket %d: hop %d came when %d was due", f.Bucket, f.Hop, next)
	}
	if len(f.Payload) != size {
		return nil, fmt.Errorf("bucket %d, hop %d: %d bytes of %d", f.Bucket, f.Hop, len(f.Payload), size)
	}
	if k.values == nil {
		if f.Hop >= r.n-1 {
			return nil, fmt.Errorf("bucket %d: hop %d holds a sum that lacks this member's values", f.Bucket, f.Hop)
		}
		k.early = append(k.early, f.Payload)
		return nil, nil
	}
	return r.apply(f.Bucket, f.Payload), nil
}

// apply adds or copies what came in the next hop of a bucket and passes it on.
func (r *Ring) apply(b int, payload []byte) []Frame {
	k := &r.buckets[b]
	h := k.hop
	k.hop++
	lo, hi := r.chunk(b, r.self-1-h)
	values := k.values[lo:hi]
	if h < r.n-1 {
		addBF16(values, payload)
	} else {
		readBF16(values, payload)
	}
	if h == r.n-2 {
		roundBF16(values)
	}
	if h == r.Hops()-1 {
		r.left--
		return nil
	}
	return []Frame{r.frame(b, h+1)}
}

// frame is what this member sends in a hop.
func (r *Ring) frame(b, hop int) Frame {
	lo, hi := r.chunk(b, r.self-hop)
	return Frame{b, hop, appendBF16(make([]byte, 0, bytesPerValue*(hi-lo)), r.buckets[b].values[lo:hi])}
}

const bytesPerValue = lockstep.BytesPerValue

// toBF16 is the upper half of the nearest float32 whose lower half is zero, ties to
// even. A NaN stays one.
func toBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 1<<6 // quiet, whatever the lower half said
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func fromBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

func appendBF16(to []byte, values []float32) []byte {
	for _, x := range values {
		to = binary.LittleEndian.AppendUint16(to, toBF16(x))
	}
	return to
}

func addBF16(values []float32, payload []byte) {
	for i := range values {
		values[i] += fromBF16(binary.LittleEndian.Uint16(payload[bytesPerValue*i:]))
	}
}

func readBF16(values []float32, payload []byte) {
	for i := range values {
		values[i] = fromBF16(binary.LittleEndian.Uint16(payload[bytesPerValue*i:]))
	}
}

func roundBF16(values []float32) {
	for i, x := range values {
		values[i] = fromBF16(toBF16(x))
	}
}

package sim

// history is a running digest of everything that happened, in order: FNV-1a over
// 64-bit words. It tells histories apart; nobody attacks it.
type history struct{ sum uint64 }

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func (h *history) mix(x uint64) {
	if h.sum == 0 {
		h.sum = fnvOffset
	}
	h.sum = (h.sum ^ x) * fnvPrime
	h.sum ^= h.sum >> 29 // FNV-1a is made for bytes: let high bits reach low ones
}

func (h *history) event(e *event) {
	h.mix(uint64(e.at)<<4 | uint64(e.kind))
	if e.to != nil {
		h.mix(uint64(e.to.index))
	}
	if e.msg != nil {
		h.mix(e.msg.key)
	}
}

func (h *history) bytes(b []byte) { h.mix(keyOf(b)) }

// keyOf is FNV-1a over bytes.
func keyOf(b []byte) uint64 {
	k := uint64(fnvOffset)
	for _, x := range b {
		k = (k ^ uint64(x)) * fnvPrime
	}
	return k
}

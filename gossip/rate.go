package gossip

// rate is what a peer was measured to send, in bytes per ms.
type rate float64

// sampled takes an answer's size in bytes and duration in ms into the rate. It reports
// false if the answer says nothing.
func (r *rate) sampled(bytes int, ms int64) bool {
	if bytes < rateMinBytes {
		return false
	}
	now := rate(bytes) / rate(max(ms, 1))
	if now < *r {
		now = *r + rate(rateDecay*(now-*r))
	}
	*r = now
	return true
}

// transferMs is the time that n bytes may take: rateSlack times what the rate
// says, within the deadlines' bounds.
func (r rate) transferMs(n int) int64 {
	ms := int64(rateSlack * rate(n) / r)
	return min(max(ms, deadlineMinMs), deadlineMaxMs)
}

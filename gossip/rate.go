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

// sampled takes an answer of so many bytes in ms into what p is known to send. It takes the place of a guess, however much
// slower it was. It reports false if the answer says nothing.
func (p *peer) sampled(bytes int, ms int64, guess bool) bool {
	r := p.rate
	if guess {
		r = 0
	}
	says := r.sampled(bytes, ms)
	if says {
		p.rate = r
	}
	return says
}

// transferMs is the time that n bytes may take: rateSlack times what the rate
// says, within the deadlines' bounds.
func (r rate) transferMs(n int) int64 {
	ms := int64(rateSlack * rate(n) / r)
	return min(max(ms, deadlineMinMs), deadlineMaxMs)
}

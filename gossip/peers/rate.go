package peers

// Rate is what a peer was measured to send, in bytes per ms.
type Rate float64

// Sampled takes an answer's size in bytes and duration in ms into the rate. It reports
// false if the answer says nothing.
func (r *Rate) Sampled(bytes int, ms int64) bool {
	if bytes < RateMinBytes {
		return false
	}
	now := Rate(bytes) / Rate(max(ms, 1))
	if now < *r {
		now = *r + Rate(rateDecay*(now-*r))
	}
	*r = now
	return true
}

// Sampled takes an answer of so many bytes in ms into what p is known to send. It takes the place of a guess, however much
// slower it was. It reports false if the answer says nothing.
func (p *Peer) Sampled(bytes int, ms int64, guess bool) bool {
	r := p.Rate
	if guess {
		r = 0
	}
	says := r.Sampled(bytes, ms)
	if says {
		p.Rate = r
	}
	return says
}

// TransferMs is the time that n bytes may take: rateSlack times what the rate
// says, within the deadlines' bounds.
func (r Rate) TransferMs(n int) int64 {
	ms := int64(RateSlack * Rate(n) / r)
	return min(max(ms, DeadlineMinMs), DeadlineMaxMs)
}

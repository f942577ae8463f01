package sim

// shareSlack is what rounding may add to a share.
const shareSlack = 1e-9

// checkShares: no delta has more of its round's weight than genesis allows, or
// than its part of a round of so few. Those that count for nothing are none of them.
func (w *World) checkShares(p int, round uint32, weights []float64) {
	var sum, most, count float64
	for _, x := range weights {
		if x > 0 {
			count++
		}
		sum, most = sum+x, max(most, x)
	}
	if count == 0 {
		return
	}
	allowed := max(w.s.Params.MaxShare, 1/count)
	if most > (allowed+shareSlack)*sum {
		w.broken("share", "one of %.0f deltas decides %.3f of round %d of fragment %d, at most %.3f is allowed", count, most/sum, round, p, allowed)
	}
}

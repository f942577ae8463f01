package fetch

import "atoll/gossip/effect"

const (
	// DiskRetryMs is the pause after the own disk could not take something. For
	// diskSlowMs after that one chunk or payload is asked for at a time, or more once
	// some were kept: a person has to make room first.
	DiskRetryMs = 5_000
	diskSlowMs  = 30_000
)

// Disk is how fetching goes on when the own disk has failed to take something.
type Disk struct {
	Until effect.Time // nothing is asked for before
	slow  effect.Time // one thing at a time until then: most likely the next will not fit either
	fits  int         // but twice as many with each that it took
}

// Failed says that the disk could not take something.
func (d *Disk) Failed(now effect.Time) { d.Until, d.slow, d.fits = now+DiskRetryMs, now+diskSlowMs, 1 }

// Worked says that the disk took something again.
func (d *Disk) Worked() { d.fits = min(2*d.fits, maxWants) }

// Allows is how many requests may be in flight, at most of them on a disk that is
// well.
func (d *Disk) Allows(now effect.Time, most int) int {
	switch {
	case now < d.Until:
		return 0
	case now < d.slow:
		return min(d.fits, most)
	}
	return most
}

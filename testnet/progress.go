package testnet

import "time"

// maxPoints is how many points of its progress a run keeps. When they are full, every other one goes, and the next are
// twice as far apart.
const maxPoints = 512

// progress is how far a run was, from its start on.
type progress struct {
	points []Point
	every  time.Duration // between two points at least
}

// add notes how far the run is, unless a point of a moment ago says it.
func (p *progress) add(at time.Duration, tokens uint64) {
	if n := len(p.points); n > 0 && at.Seconds() < p.points[n-1].AtS+max(p.every, pollEvery).Seconds() {
		return
	}
	if len(p.points) == maxPoints {
		for i := range maxPoints / 2 {
			p.points[i] = p.points[2*i]
		}
		p.points, p.every = p.points[:maxPoints/2], 2*max(p.every, pollEvery)
	}
	p.points = append(p.points, Point{AtS: at.Seconds(), Tokens: tokens})
}

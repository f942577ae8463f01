package gossip

// flow measures bytes per ms over the last half to whole of flowMs.
type flow struct {
	from  Time // 0 before the first
	bytes float64
}

// add counts bytes that came now. The first ones only start the clock.
func (f *flow) add(now Time, bytes int) {
	if f.from == 0 {
		f.from = now
		return
	}
	f.forget(now)
	f.bytes += float64(bytes)
}

// forget leaves the last half of a span that has become too long.
func (f *flow) forget(now Time) {
	if span := now - f.from; span > flowMs {
		f.bytes *= float64(flowMs/2) / float64(span)
		f.from = now - flowMs/2
	}
}

// rate is 0 until the flow was watched for flowMinMs.
func (f flow) rate(now Time) float64 {
	if f.from == 0 || now < f.from+flowMinMs {
		return 0
	}
	return f.bytes / float64(now-f.from)
}

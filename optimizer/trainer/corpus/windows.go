package corpus

// Windows cuts data into windows of context+1 bytes with stride context, so
// that every byte but the first is the target of exactly one window. The last
// window is shorter where the data ends; a window has at least one target.
func Windows(data []byte, context int) [][]byte {
	var windows [][]byte
	for at := 0; at+1 < len(data); at += context {
		windows = append(windows, data[at:min(at+context+1, len(data))])
	}
	return windows
}

// HeldOutSample returns windows spread evenly over the held-out part that
// together have about the given number of targets. It returns at least one
// window, and all of them where the part is no larger.
func (c *Corpus) HeldOutSample(targets, context int) [][]byte {
	all := Windows(c.HeldOut(), context)
	var sample [][]byte
	for _, at := range spread(targets/context, len(all)) {
		sample = append(sample, all[at])
	}
	return sample
}

// HeldOutStarts returns the places in the held-out part of rows spread evenly over it, each of
// context bytes and one more. They are at most so many, and all of them where the part is no larger.
func (c *Corpus) HeldOutStarts(rows, context int) []uint64 {
	starts := []uint64{}
	for _, at := range spread(rows, (len(c.HeldOut())-1)/context) {
		starts = append(starts, uint64(at*context))
	}
	return starts
}

// spread returns so many of the whole numbers below all, at least one and at most all of them, evenly.
func spread(n, all int) []int {
	places := make([]int, min(max(n, 1), all))
	for i := range places {
		places[i] = (2*i + 1) * all / (2 * len(places))
	}
	return places
}

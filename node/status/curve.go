package status

// Curve is values over tokens, of which it keeps at most so many: when it is full every other one goes.
type Curve struct {
	At    []uint64
	Value []float64
}

// Add records a value, unless one of as many tokens or more is there. most is even.
func (c *Curve) Add(at uint64, value float64, most int) {
	if n := len(c.At); n > 0 && c.At[n-1] >= at {
		return
	}
	if len(c.At) == most {
		c.At, c.Value = everyOther(c.At), everyOther(c.Value)
	}
	c.At, c.Value = append(c.At, at), append(c.Value, value)
}

// everyOther leaves the first of some points, the third and so on, in their place.
func everyOther[T any](points []T) []T {
	half := points[:len(points)/2]
	for i := range half {
		half[i] = points[2*i]
	}
	return half
}

package p2p

// setSegment does nothing: Windows sizes segments by itself.
func setSegment(uintptr, int) error { return nil }

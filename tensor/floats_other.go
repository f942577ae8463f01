//go:build !linux

package tensor

// largePage is the size of a large page where there is one.
const largePage = 2 << 20

// adviseLarge does nothing: other systems give large pages unasked or not at all.
func adviseLarge([]byte) {}

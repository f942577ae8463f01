//go:build unix

package p2p

import "syscall"

// setSegment bounds the segments of a TCP socket that is not connected yet, in both directions.
func setSegment(fd uintptr, bytes int) error {
	return syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, bytes)
}

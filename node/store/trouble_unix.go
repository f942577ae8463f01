//go:build unix

package store

import "syscall"

var troubles = []sign{
	{syscall.ENOSPC, Full}, {syscall.EDQUOT, Full},
	{syscall.EROFS, ReadOnly},
	{syscall.EIO, Failing},
	{syscall.EACCES, Denied}, {syscall.EPERM, Denied},
}

package store

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// Tests plant the errors of Unix, which package syscall has here as well.
var troubles = []sign{
	{windows.ERROR_DISK_FULL, Full}, {windows.ERROR_HANDLE_DISK_FULL, Full}, {windows.ERROR_DISK_QUOTA_EXCEEDED, Full},
	{windows.ERROR_WRITE_PROTECT, ReadOnly},
	{windows.ERROR_CRC, Failing}, {windows.ERROR_IO_DEVICE, Failing},
	{windows.ERROR_ACCESS_DENIED, Denied},
	{syscall.ENOSPC, Full}, {syscall.EROFS, ReadOnly}, {syscall.EIO, Failing}, {syscall.EACCES, Denied},
}

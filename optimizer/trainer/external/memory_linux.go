package external

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile makes an empty file that is in memory only, and the path by which processes of the same user open it. It is gone
// with this process, however that ends. The error says that the system has none, or no /proc.
func memoryFile(name string) (f *os.File, path string, err error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, "", err
	}
	f = os.NewFile(uintptr(fd), name)
	path = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
	again, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, "", errors.Join(err, f.Close())
	}
	return f, path, again.Close()
}

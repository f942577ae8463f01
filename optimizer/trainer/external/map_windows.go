package external

import (
	"os"
	"syscall"
	"unsafe"
)

// mapFile maps so many bytes of a file for reading and writing, shared with all that map it.
func mapFile(f *os.File, size int64) ([]byte, error) {
	mapping, err := syscall.CreateFileMapping(syscall.Handle(f.Fd()), nil, syscall.PAGE_READWRITE, uint32(size>>32), uint32(size), nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateFileMapping", err)
	}
	defer syscall.CloseHandle(mapping) // the view keeps it open
	at, err := syscall.MapViewOfFile(mapping, syscall.FILE_MAP_READ|syscall.FILE_MAP_WRITE, 0, 0, uintptr(size))
	if err != nil {
		return nil, os.NewSyscallError("MapViewOfFile", err)
	}
	// What is there is not Go's memory: it does not move.
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), size), nil
}

func unmapFile(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return os.NewSyscallError("UnmapViewOfFile", syscall.UnmapViewOfFile(uintptr(unsafe.Pointer(&b[0]))))
}

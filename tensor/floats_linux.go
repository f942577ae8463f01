package tensor

import "syscall"

// largePage is the size of a large page on amd64, and of the usual one on arm64.
const largePage = 2 << 20

// adviseLarge asks for large pages, which are given when memory is first touched. A system
// that has none says so; the memory is as good.
func adviseLarge(pages []byte) { _ = syscall.Madvise(pages, syscall.MADV_HUGEPAGE) }

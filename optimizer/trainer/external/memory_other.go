//go:build !linux

package external

import (
	"errors"
	"os"
)

// memoryFile says that this system has no files in memory that other processes can open.
func memoryFile(string) (*os.File, string, error) { return nil, "", errors.ErrUnsupported }

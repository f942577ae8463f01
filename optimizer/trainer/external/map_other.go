//go:build !unix

package external

import (
	"errors"
	"os"
)

var errNoMap = errors.New("learners in processes of their own need Linux, macOS or another Unix so far; use the built-in trainer here")

func mapFile(*os.File, int64) ([]byte, error) { return nil, errNoMap }

func unmapFile([]byte) error { return nil }

// MapFile maps a whole file, as a learner does with its slab.
func MapFile(string) ([]byte, error) { return nil, errNoMap }

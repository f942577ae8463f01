package external

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"atoll/tensor"
)

// aside is a file with the values of the slab while the learner evaluates others. It is written and read, not mapped: so the
// node has no second copy in its memory, and an error of the disk is an error.
type aside struct{ *os.File }

const asideFile = "aside"

// newAside makes the file anew.
func newAside(dir string) (a aside, err error) {
	a.File, err = os.OpenFile(filepath.Join(dir, asideFile), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	return a, err
}

// dropAside removes what a process left that was killed, of earlier builds as well.
func dropAside(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, asideFile+"*"))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// put writes values, all of them.
func (a aside) put(values []float32) error {
	_, err := a.WriteAt(tensor.Bytes(values), 0)
	return err
}

// read reads what put wrote.
func (a aside) read(values []float32) error {
	if _, err := a.ReadAt(tensor.Bytes(values), 0); err != nil {
		return fmt.Errorf("read the values back that were put aside: %w", err)
	}
	return nil
}

// close removes the file, if there is one.
func (a aside) close() error {
	if a.File == nil {
		return nil
	}
	return errors.Join(a.Close(), os.Remove(a.Name()))
}

package corpus

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"atoll/optimizer/trainer/corpus/documents"
)

// readPath returns the text of a file or of all the files below a folder that are taken by their path and kept by their text.
func readPath(name string, tally documents.Tally, take func(path string) bool, keep func(text []byte) bool) ([]byte, error) {
	files, err := documents.List([]string{name}, tally)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, fmt.Errorf("%w, %q for Go's own source, or nothing for Newton's Opticks, which comes with atoll", err, GoCode)
	}
	files = slices.DeleteFunc(files, func(f documents.File) bool { return !take(strings.TrimPrefix(f.Path, name)) })
	data, err := readFiles(files, len(files) == 1 && files[0].Path == name, tally, keep)
	if err == nil && len(data) == 0 {
		err = fmt.Errorf("%s holds no text (%s): pass a file or a folder of text", name, cmp.Or(tally.String(), "it is empty"))
	}
	return data, err
}

// readFiles joins the texts of files that are kept. A document that does not end a line gets a newline, so that its last word does not run
// into the next one's first; a single file of text is taken as it is.
func readFiles(files []documents.File, single bool, tally documents.Tally, keep func(text []byte) bool) (all []byte, err error) {
	all = make([]byte, 0, min(documents.Size(files), MaxBytes)) // growing takes twice the room
	for _, f := range files {
		if f.Size < 0 {
			return nil, fmt.Errorf("%s is a pipe or a device, and text is read anew at every start: pass a file or a folder", f.Path)
		}
		text, asItIs := all, single
		err := f.Each(documents.Options{Field: "text", End: -1, Tally: tally}, func(d documents.Document, _ int64) error {
			if text = append(text, d.Text...); !d.Part {
				text, asItIs = endLine(text), false
			}
			if len(text) > MaxBytes {
				return fmt.Errorf("the text up to %s has more than %d bytes, and it is held in memory: pass a part of it, or what `atoll data build` makes of it", f.Path, int64(MaxBytes))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if !asItIs && len(text) > len(all) {
			text = endLine(text)
		}
		if keep(text[len(all):]) {
			all = text
		}
	}
	return all, nil
}

// endLine ends the last line of a text, which is not empty.
func endLine(text []byte) []byte { return append(bytes.TrimSuffix(text, []byte("\n")), '\n') }

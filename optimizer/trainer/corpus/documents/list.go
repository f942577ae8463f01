package documents

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is a file of documents.
type File struct {
	Path string
	Size int64

	found bool // in a folder: it is left out if it turns out to be binary
}

// Format says how a file is read. It follows from the file's name.
type Format int

// Formats.
const (
	Text Format = iota
	JSONLines
	Parquet
	Tokens // files of nanoGPT and llm.c
)

// packings are endings that say how a file is packed.
var packings = []string{".gz", ".zst"}

// format returns the format of a file and its packing, "" for none.
func (f File) format() (kind Format, packing string) {
	name := strings.ToLower(f.Path)
	if ext := filepath.Ext(name); slices.Contains(packings, ext) {
		name, packing = strings.TrimSuffix(name, ext), ext
	}
	switch filepath.Ext(name) {
	case ".jsonl", ".ndjson":
		return JSONLines, packing
	case ".parquet":
		return Parquet, packing
	case ".bin":
		if !f.found {
			return Tokens, packing
		}
	}
	return Text, packing
}

// List returns the files that inputs name, in the order of inputs. A folder stands for all its
// files, by path, without hidden ones and without symbolic links: what they name is below
// the folder anyway or was not asked for.
func List(inputs []string) ([]File, error) {
	var files []File
	for _, input := range inputs {
		info, err := os.Stat(input)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: pass files and folders", err)
		case info.Mode().IsRegular():
			files = append(files, File{Path: input, Size: info.Size()})
			continue
		case !info.IsDir():
			return nil, fmt.Errorf("%s is %s: pass a file or a folder", input, info.Mode().Type())
		}
		below, err := listFolder(input)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", input, err)
		}
		files = append(files, below...)
	}
	return files, nil
}

func listFolder(folder string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(entry.Name(), ".") && path != folder
		switch {
		case err != nil:
			return err
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case hidden, !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files = append(files, File{path, info.Size(), true})
		return nil
	})
	return files, err
}

// binaryProbe is how far into a file a NUL byte makes it binary: the length that git
// looks at.
const binaryProbe = 8000

func isBinary(head []byte) bool { return bytes.IndexByte(head, 0) >= 0 }

package documents

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Stdin is the input that stands for the standard input.
const Stdin = "-"

// File is a file of documents.
type File struct {
	Path  string
	Size  int64 // in bytes; -1 of a pipe, which can be read only once
	found bool  // in a folder: it is left out if it turns out to be no text
}

// List returns the files that inputs name, in the order of inputs, and counts what it left out. A folder stands for all its files, in
// the order of their slash-separated paths, without hidden ones. Links are followed; what several names of a folder lead to is there once.
func List(inputs []string, left Tally) (files []File, err error) {
	for _, input := range inputs {
		info, err := os.Stat(input)
		switch {
		case input == Stdin || err == nil && !info.IsDir() && !info.Mode().IsRegular():
			files = append(files, File{Path: input, Size: -1})
		case err != nil:
			return nil, fmt.Errorf("%s: %w: pass files and folders", input, cause(err))
		case !info.IsDir():
			files = append(files, File{Path: input, Size: info.Size()})
		default:
			l := lister{left: left, seen: map[string]bool{}, links: []string{filepath.Clean(input)}}
			if err := l.list(); err != nil {
				return nil, fmt.Errorf("list %w", err)
			}
			files = append(files, l.files...)
		}
	}
	return files, nil
}

// Size is that of files together, in bytes.
func Size(files []File) (size int64) {
	for _, f := range files {
		size += max(f.Size, 0)
	}
	return size
}

// cause is an error of a file without the name of the call that met it.
func cause(err error) error {
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		err = of.Err
	}
	return err
}

// lister lists a folder.
type lister struct {
	files []File
	left  Tally
	root  string          // its real path
	seen  map[string]bool // real paths of files and folders
	links []string        // that are not followed yet; the folder itself is the first
	lost  string          // what is said of links that lead nowhere
}

// list follows links until there are no more. The names that a folder has itself come before those that links give it: a link
// to a neighbour changes nothing.
func (l *lister) list() error {
	for len(l.links) > 0 {
		path := l.links[0]
		l.links = l.links[1:]
		if err := l.follow(path); err != nil {
			return fmt.Errorf("%s: %w", path, cause(err))
		}
	}
	slices.SortFunc(l.files, func(a, b File) int { return cmp.Compare(filepath.ToSlash(a.Path), filepath.ToSlash(b.Path)) })
	return nil
}

// follow lists what a link leads to, if that is new and no folder that has this one.
func (l *lister) follow(path string) error {
	real, err := filepath.Abs(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		l.lost = cmp.Or(l.lost, "links that lead nowhere left out"+first+path)
		l.left[l.lost]++
		return nil
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return err
	case l.seen[real] || strings.HasPrefix(l.root, strings.TrimSuffix(real, string(filepath.Separator))+string(filepath.Separator)):
		l.left["links left out to what is read already"]++
	case info.IsDir():
		l.root = cmp.Or(l.root, real)
		return l.walk(path, real)
	default:
		l.file(path, real, info)
	}
	return nil
}

// walk lists what is below a folder, but for what links in it lead to.
func (l *lister) walk(name, real string) error {
	return filepath.WalkDir(real, func(path string, e fs.DirEntry, err error) error {
		shown := name + path[len(real):]
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(e.Name(), ".") && path != real:
			if l.left["hidden names left out"]++; e.IsDir() {
				return fs.SkipDir
			}
		case e.IsDir() && l.seen[path]:
			return fs.SkipDir
		case e.IsDir():
			l.seen[path] = true
		case e.Type()&fs.ModeSymlink != 0:
			l.links = append(l.links, shown)
		default:
			info, err := e.Info()
			if err == nil {
				l.file(shown, path, info)
			}
			return err
		}
		return nil
	})
}

func (l *lister) file(path, real string, info fs.FileInfo) {
	if !info.Mode().IsRegular() {
		l.left["devices left out"]++
	} else if !l.seen[real] {
		l.seen[real] = true
		l.files = append(l.files, File{Path: path, Size: info.Size(), found: true})
	}
}

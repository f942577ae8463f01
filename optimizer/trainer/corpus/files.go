package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// binaryProbe is how far into a file a NUL byte makes it binary: the length
// that git looks at.
const binaryProbe = 8000

// selection says which files below a folder belong to a corpus.
type selection struct {
	enter func(folder string) bool // by base name
	take  func(file string) bool   // by base name
	keep  func(text []byte) bool   // by content
}

// anyText selects every text file that is not hidden.
var anyText = selection{enter: visible, take: visible, keep: isText}

func visible(name string) bool { return !strings.HasPrefix(name, ".") }

// isText holds for text in any encoding that has no NUL byte early on.
func isText(b []byte) bool {
	return bytes.IndexByte(b[:min(len(b), binaryProbe)], 0) < 0
}

// readPath returns the text of a file or of all the files below a folder.
func readPath(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("%w: pass a file, a folder, %q for Go's own source, or nothing for Newton's Opticks, which comes with atoll", err, GoCode)
	}
	switch {
	case info.IsDir():
		return readFolder(name, anyText)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is neither a file of text nor a folder: pass one", name)
	case info.Size() > MaxBytes:
		return nil, tooLarge(name, info.Size())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return textOf(name, data)
}

// readFolder joins the selected files below a folder in the order of their
// slash-separated paths. Symbolic links are skipped: what they name is either
// below the folder anyway or not asked for.
func readFolder(name string, sel selection) ([]byte, error) {
	root, err := os.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := listFiles(root.FS(), sel)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", name, err)
	}
	data, err := joinFiles(root.FS(), files, sel)
	if err != nil {
		return nil, fmt.Errorf("read below %s: %w", name, err)
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("%s holds no text: pass a folder of text, .go, .md or .jsonl files", name)
	}
	return data, nil
}

// listFiles returns the sorted paths of the regular files that sel admits by
// name, after checking that together they fit into memory.
func listFiles(fsys fs.FS, sel selection) ([]string, error) {
	var files []string
	var size int64
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name != "." && !sel.enter(entry.Name()) {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular() || !sel.take(entry.Name()):
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if size += info.Size(); size > MaxBytes {
			return tooLarge("the folder up to "+name, size)
		}
		files = append(files, name)
		return nil
	})
	slices.Sort(files)
	return files, err
}

func joinFiles(fsys fs.FS, files []string, sel selection) ([]byte, error) {
	var all []byte
	for _, name := range files {
		raw, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		if !sel.keep(raw) {
			continue
		}
		text, err := textOf(name, raw)
		if err != nil {
			return nil, err
		}
		all = appendDocument(all, text)
	}
	return all, nil
}

// appendDocument adds a document and, where it does not end a line, a newline,
// so that its last word does not run into the next document's first.
func appendDocument(all, text []byte) []byte {
	all = append(all, text...)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		all = append(all, '\n')
	}
	return all
}

// textOf returns what is text in a file: of JSON lines their "text" fields, of
// anything else all of it.
func textOf(name string, raw []byte) ([]byte, error) {
	if !strings.EqualFold(path.Ext(name), ".jsonl") {
		return raw, nil
	}
	text, err := jsonLines(raw)
	if err != nil {
		return nil, fmt.Errorf("%s %w", name, err)
	}
	return text, nil
}

// jsonLines joins the "text" fields of JSON objects, one on a line. Blank
// lines are skipped; a line without the field is an error that names its number.
func jsonLines(raw []byte) ([]byte, error) {
	var all []byte
	number := 0
	for line := range bytes.Lines(raw) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var document struct {
			Text *string `json:"text"`
		}
		if err := json.Unmarshal(line, &document); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if document.Text == nil {
			return nil, fmt.Errorf(`line %d: no "text" field: each line must be an object such as {"text": "..."}`, number)
		}
		all = appendDocument(all, []byte(*document.Text))
	}
	return all, nil
}

func tooLarge(what string, size int64) error {
	return fmt.Errorf("%s is %d bytes: a corpus is held in memory and may have at most %d: pass a part of it", what, size, int64(MaxBytes))
}

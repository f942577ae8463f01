package documents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files, given by slash-separated path, and links, given as "-> target", below a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		target, isLink := strings.CutPrefix(text, "-> ")
		err := error(nil)
		if isLink {
			err = os.Symlink(filepath.FromSlash(strings.Replace(target, "ROOT", root, 1)), path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil && isLink {
			t.Skip("no symbolic links here:", err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// read returns the documents of all files that inputs name, and what was counted.
func read(t *testing.T, inputs ...string) (all []string, counted Tally) {
	t.Helper()
	counted = Tally{}
	files, err := List(inputs, counted)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		got, note, err := readAll(f, options)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got...)
		counted.Add(note)
	}
	return all, counted
}

func TestList(t *testing.T) {
	root := tree(t, map[string]string{"b.txt": "b", "a/z.go": "z", "a-b/x": "x", "a/.hidden": "h", ".git/x": "g", "c.bin": "no\x00text", "d.txt": "d",
		"e.zip": "PK\x03\x04", "f.json": "[1]", "g.json": "{\"a\": 1}"})
	got, counted := read(t, filepath.Join(root, "d.txt"), root)
	want := "binary files left out: 1, files of JSON, not one object a line, taken as text: 2, hidden names left out: 2, packed files left out, the first of them " + filepath.Join(root, "e.zip") + ": 1"
	if docs := []string{"d", "x", "z", "b", "d", "[1]", "{\"a\": 1}"}; !slices.Equal(got, docs) || counted.String() != want { // '-' sorts before '/'
		t.Errorf("read %q, %q; want %q, %q", got, counted, docs, want)
	}
	if _, err := List([]string{filepath.Join(root, "absent")}, Tally{}); err == nil || !strings.Contains(err.Error(), "absent: ") || strings.Contains(err.Error(), "stat") {
		t.Errorf("error %v of a file that is not there", err)
	}
}

const again = "links left out to what is read already"

// TestLinks: a folder is read whatever names lead to it, and what several names lead to once, where it is if that is below the folder.
func TestLinks(t *testing.T) {
	root := tree(t, map[string]string{
		"blobs/1": "one", "blobs/2": "two", "blobs/.3": "three", "other/deep/4": "four", "outside.txt": "outside",
		"cache/a.txt": "-> ../blobs/1", "cache/b.txt": "-> ../blobs/2", "cache/c.txt": "-> ../blobs/.3", "cache/again.txt": "-> a.txt",
		"cache/lost.txt": "-> ../blobs/5", "cache/folder": "-> ../other", "cache/up": "-> ..", "cache/self": "-> self",
		"other/back": "-> ../cache", "other/same": "-> deep",
		"named": "-> cache", "named.txt": "-> outside.txt", "absolute": "-> ROOT/cache",
	})
	for _, folder := range []string{"cache", "named", "absolute"} {
		got, counted := read(t, filepath.Join(root, folder))
		if want := []string{"one", "two", "three", "four"}; !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", folder, got, want)
		}
		if counted[again] != 4 || counted["links that lead nowhere left out, the first of them "+filepath.Join(root, folder, "lost.txt")] != 2 {
			t.Errorf("%s: %v", folder, counted)
		}
	}
	if got, _ := read(t, filepath.Join(root, "named.txt")); !slices.Equal(got, []string{"outside"}) {
		t.Errorf("a link that was named has %q", got)
	}
	inside := tree(t, map[string]string{"a": "-> z", "b.txt": "-> z/1.txt", "z/1.txt": "one", "z/2.txt": "two", "m.txt": "m"})
	if got, counted := read(t, inside); !slices.Equal(got, []string{"m", "one", "two"}) || counted[again] != 2 {
		t.Errorf("links to neighbours change what is read: %q, %v", got, counted)
	}
}

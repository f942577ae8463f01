package corpus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writeTree writes files, given by slash-separated path, below a new folder.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		full := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func text(c *Corpus) string { return string(c.Train()) + string(c.HeldOut()) }

func TestOpenFileIsTakenAsItIs(t *testing.T) {
	root := writeTree(t, map[string]string{"a.md": "no line end"})
	c, err := Open(filepath.Join(root, "a.md"))
	if err != nil {
		t.Fatal(err)
	}
	if text(c) != "no line end" || c.Name() != "a.md" || c.Note() != "" {
		t.Errorf("got %s with %q, %q", c.Name(), text(c), c.Note())
	}
}

func TestOpenFolder(t *testing.T) {
	root := writeTree(t, map[string]string{
		"a/x.md":      "second\n",
		"a-b/x.go":    "first", // '-' sorts before '/'
		"b.jsonl":     "{\"text\":\"third\"}\n\n{\"text\":\"fourth\",\"id\":1}\n{\"text\":null}\n",
		"c.png":       "\x89PNG\x00",
		".hidden":     "no",
		".git/config": "no",
		"a/.git/HEAD": "no",
		"d/empty.txt": "",
		"d/utf16.txt": "\xff\xfef\x00a\x00\xe7\x00a\x00d\x00e\x00",
	})
	c, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := "first\nsecond\nthird\nfourth\nfaçade\n"; text(c) != want {
		t.Errorf("got %q, want %q", text(c), want)
	}
	if want := "binary files left out: 1, empty files left out: 1, files converted to UTF-8: 1, hidden names left out: 3, null and empty documents left out: 1"; c.Note() != want {
		t.Errorf("the note is %q, want %q", c.Note(), want)
	}
}

func TestOpenErrorsNameTheRemedy(t *testing.T) {
	root := writeTree(t, map[string]string{
		"notext.jsonl":   "{\"text\":\"a\"}\n{\"body\":\"b\"}\n",
		"bad.jsonl":      "{\"text\":\"a\"}\n{\"text\":",
		"empty/.nothing": "",
		"tokens.bin":     "\x01\x00",
	})
	for name, want := range map[string]string{
		"missing":      "pass files and folders, \"goroot\"",
		"notext.jsonl": `line 2: no field "text": text is in "body"`,
		"bad.jsonl":    "line 2: it is not one JSON object a line",
		"empty":        "holds no text (hidden names left out: 1): pass a file or a folder of text",
		"tokens.bin":   "pass it to atoll data build with --tokenizer",
	} {
		_, err := Open(filepath.Join(root, name))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	if _, err := Open(os.DevNull); err == nil || !strings.Contains(err.Error(), "is a pipe or a device") {
		t.Error(err)
	}
}

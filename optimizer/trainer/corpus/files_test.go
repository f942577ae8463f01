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
	root := writeTree(t, map[string]string{"a.bin": "no\x00line end"})
	c, err := Open(filepath.Join(root, "a.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if text(c) != "no\x00line end" || c.Name() != "a.bin" {
		t.Errorf("got %s with %q", c.Name(), text(c))
	}
}

func TestOpenFolder(t *testing.T) {
	root := writeTree(t, map[string]string{
		"a/x.md":       "second\n",
		"a-b/x.go":     "first", // '-' sorts before '/'
		"b.jsonl":      "{\"text\":\"third\"}\n\n{\"text\":\"fourth\",\"id\":1}\n",
		"c.png":        "\x89PNG\x00",
		".hidden":      "no",
		".git/config":  "no",
		"a/.git/HEAD":  "no",
		"d/empty.txt":  "",
		"d/latin1.txt": "fa\xe7ade\n",
	})
	c, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := "first\nsecond\nthird\nfourth\nfa\xe7ade\n"; text(c) != want {
		t.Errorf("got %q, want %q", text(c), want)
	}
}

func TestOpenFolderSkipsSymbolicLinks(t *testing.T) {
	outside := writeTree(t, map[string]string{"secret.txt": "secret\n"})
	root := writeTree(t, map[string]string{"own.txt": "own\n"})
	for link, target := range map[string]string{"file.txt": filepath.Join(outside, "secret.txt"), "folder": outside, "self": root} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	for _, name := range []string{root, filepath.Join(root, "self")} {
		c, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if text(c) != "own\n" {
			t.Errorf("%s: got %q", name, text(c))
		}
	}
}

func TestOpenErrorsNameTheRemedy(t *testing.T) {
	root := writeTree(t, map[string]string{
		"notext.jsonl":   "{\"text\":\"a\"}\n{\"body\":\"b\"}\n",
		"bad.jsonl":      "{\"text\":\"a\"}\n{\"text\":",
		"empty/.nothing": "",
	})
	for name, want := range map[string]string{
		"missing":      "pass a file, a folder",
		"notext.jsonl": `line 2: no "text" field`,
		"bad.jsonl":    "line 2: unexpected end",
		"empty":        "holds no text",
	} {
		_, err := Open(filepath.Join(root, name))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
}

func FuzzJSONLines(f *testing.F) {
	f.Add([]byte("{\"text\":\"a\"}\n\n{\"text\":\"b\"}"))
	f.Add([]byte("{\"text\":null}"))
	f.Add([]byte("[]\n{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, err := jsonLines(raw)
		if err != nil && text != nil {
			t.Errorf("%d bytes beside error %v", len(text), err)
		}
	})
}

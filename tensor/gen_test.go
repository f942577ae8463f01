package tensor

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestAssemblyIsWhatTheGeneratorWrites runs the generator and compares its files with
// those in this folder, byte for byte.
func TestAssemblyIsWhatTheGeneratorWrites(t *testing.T) {
	if out, err := forThisMachine("go", "list", "-deps", "./gen").CombinedOutput(); err != nil {
		t.Skipf("the generator's modules cannot be loaded: %v\n%s", err, out)
	}
	dir := t.TempDir()
	if out, err := forThisMachine("go", "run", "./gen", "-dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("go run ./gen: %v\n%s", err, out)
	}
	written, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(written) == 0 {
		t.Fatalf("the generator wrote no files: %v", err)
	}
	for _, path := range written {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Base(path)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes (%v): run go generate in this folder", filepath.Base(path), err)
		}
	}
}

// forThisMachine is a command that does not see which one the tests were built for.
func forThisMachine(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "GOOS=", "GOARCH=")
	return cmd
}

// TestWordsAreWhatTheirCommentsSay has a disassembler that knows nothing of the generator
// read the instructions that the Go assembler does not know.
func TestWordsAreWhatTheirCommentsSay(t *testing.T) {
	disassembler, err := exec.LookPath("aarch64-linux-gnu-objdump")
	if err != nil {
		t.Skip("there is no disassembler for arm64: install binutils-aarch64-linux-gnu")
	}
	code, want := armWords(t)
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(disassembler, "-D", "-b", "binary", "-m", "aarch64", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range regexp.MustCompile(`(?m)^ +[0-9a-f]+:\t[0-9a-f]+ \t(.*)$`).FindAllSubmatch(out, -1) {
		got = append(got, strings.Join(strings.Fields(string(line[1])), " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d instructions are not the %d that their comments say:\n%s", len(got), len(want), out)
	}
}

// armWords collects the instructions given as words, and their comments.
func armWords(t *testing.T) (code []byte, comments []string) {
	files, err := filepath.Glob("*_arm64.s")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no assembly for arm64: %v", err)
	}
	seen := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`WORD +\$0x([0-9a-f]+) // (.*)`).FindAllStringSubmatch(string(text), -1) {
			word, err := strconv.ParseUint(m[1], 16, 32)
			if err != nil {
				t.Fatalf("%s: %s: %v", name, m[0], err)
			}
			if !seen[m[0]] {
				code, comments = binary.LittleEndian.AppendUint32(code, uint32(word)), append(comments, m[2])
			}
			seen[m[0]] = true
		}
	}
	return code, comments
}

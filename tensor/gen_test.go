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
// read the instructions that the Go assembler does not know: words for arm64, bytes for amd64.
func TestWordsAreWhatTheirCommentsSay(t *testing.T) {
	for _, c := range []struct {
		files, machine, install string
		programs                []string
		read                    func(t *testing.T, text string) (code []byte, comment string, rest string)
	}{
		{"*_arm64.s", "aarch64", "binutils-aarch64-linux-gnu", []string{"aarch64-linux-gnu-objdump"}, armWord},
		{"*_amd64.s", "i386:x86-64", "binutils-x86-64-linux-gnu", []string{"x86_64-linux-gnu-objdump", "objdump"}, intelBytes},
	} {
		t.Run(c.machine, func(t *testing.T) {
			disassembler := programFor(t, c.machine, c.programs)
			if disassembler == "" {
				t.Skipf("there is no disassembler for %s: install %s", c.machine, c.install)
			}
			code, want := instructions(t, c.files, c.read)
			if got := disassembled(t, disassembler, c.machine, code); !slices.Equal(got, want) {
				t.Errorf("instructions are not what their comments say:\n%q\n%q", got, want)
			}
		})
	}
}

// programFor returns the first of the disassemblers that is there and knows the machine.
func programFor(t *testing.T, machine string, programs []string) string {
	for _, name := range programs {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if out, err := exec.Command(path, "--info").Output(); err == nil && bytes.Contains(out, []byte(strings.Split(machine, ":")[0])) {
			return path
		}
	}
	return ""
}

// disassembled returns the instructions that a disassembler finds.
func disassembled(t *testing.T, program, machine string, code []byte) (found []string) {
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "-D", "-w", "-b", "binary", "-m", machine, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^ +[0-9a-f]+:\t[0-9a-f ]+\t(.*)$`).FindAllSubmatch(out, -1) {
		found = append(found, strings.Join(strings.Fields(string(line[1])), " "))
	}
	return found
}

// instructions collects what is not written in assembly, each once, and the comments.
func instructions(t *testing.T, files string, read func(t *testing.T, text string) (code []byte, comment, rest string)) (all []byte, comments []string) {
	names, err := filepath.Glob(files)
	if err != nil || len(names) == 0 {
		t.Fatalf("there is no assembly %s: %v", files, err)
	}
	seen := map[string]bool{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for rest := string(text); ; {
			var code []byte
			var comment string
			if code, comment, rest = read(t, rest); code == nil {
				break
			}
			if !seen[comment] {
				all, comments = append(all, code...), append(comments, comment)
			}
			seen[comment] = true
		}
	}
	if len(comments) == 0 {
		t.Fatalf("%s have no instruction to look at", files)
	}
	return all, comments
}

var (
	armLine    = regexp.MustCompile(`WORD +\$0x([0-9a-f]+) // (.*)`)
	intelLines = regexp.MustCompile(`\t// ([a-z].*)\n((?:\tBYTE +\$0x[0-9a-f]+\n)+)`)
	intelByte  = regexp.MustCompile(`0x([0-9a-f]+)`)
)

// armWord reads the next instruction given as a word, with its comment behind it.
func armWord(t *testing.T, text string) (code []byte, comment, rest string) {
	m := armLine.FindStringSubmatchIndex(text)
	if m == nil {
		return nil, "", ""
	}
	word := parsed(t, text[m[2]:m[3]], 32)
	return binary.LittleEndian.AppendUint32(nil, uint32(word)), text[m[4]:m[5]], text[m[1]:]
}

// intelBytes reads the next instruction given as bytes, with its comment above.
func intelBytes(t *testing.T, text string) (code []byte, comment, rest string) {
	m := intelLines.FindStringSubmatchIndex(text)
	if m == nil {
		return nil, "", ""
	}
	for _, b := range intelByte.FindAllStringSubmatch(text[m[4]:m[5]], -1) {
		code = append(code, byte(parsed(t, b[1], 8)))
	}
	return code, text[m[2]:m[3]], text[m[1]:]
}

func parsed(t *testing.T, hex string, bits int) uint64 {
	x, err := strconv.ParseUint(hex, 16, bits)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

package token

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// This file compares with the judge, PyPI's tokenizers. TestGoldens has its answers in a
// file; TestJudge asks it, where there is a python3 that has it:
//
//	ATOLL_LONG=1 go test ./tensor/token -run TestJudge -timeout 1h
//	ATOLL_LONG=1 ATOLL_TOKENIZERS=a/tokenizer.json:b/tokenizer.json go test ./tensor/token -run TestJudge -timeout 2h

var writeGoldens = flag.Bool("goldens", false, "ask the judge for new goldens")

const (
	goldenTexts = 3000
	judgedTexts = 250_000 // of each file: a million of the four families
	goldenFile  = "testdata/goldens.jsonl.gz"

	markedGoldenTexts = 400
	markedGoldenFile  = "testdata/marked.jsonl.gz"
)

// familyFiles are those of the goldens. Those of markedFiles, whose tokens have a mark for a space, have goldens of their own.
var (
	familyFiles = []string{"gpt2", "llama3", "qwen2", "smollm"}
	markedFiles = []string{"llama2", "mistral", "gemma"}
	allFiles    = slices.Concat(familyFiles, markedFiles)
)

func load(t testing.TB, name string) *BPE {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

func familyFile(name string) string { return filepath.Join("testdata", name+".json") }

// answer is what the judge makes of a text.
type answer struct {
	ids  []int32
	text string
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *answer) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&a.ids, &a.text})
}

// golden is one text and its ids in every family.
type golden struct {
	Text string    `json:"text"`
	IDs  [][]int32 `json:"ids"`
}

func TestGoldens(t *testing.T) {
	var files []string
	for _, name := range familyFiles {
		files = append(files, familyFile(name))
	}
	random := newTexts(1)
	compareGoldens(t, goldenFile, files, goldenTexts, func(int) string { return random.next() })
}

// TestMarkedGoldens is TestGoldens for the families with marks, in all forms of their files.
func TestMarkedGoldens(t *testing.T) {
	random := newTexts(4)
	compareGoldens(t, markedGoldenFile, markedForms(t), markedGoldenTexts, func(i int) string {
		if i < len(nasty) {
			return nasty[i]
		}
		return random.next()
	})
}

// compareGoldens compares the ids of so many texts with those in a file, which has a row of them for each text.
func compareGoldens(t *testing.T, golds string, files []string, texts int, text func(int) string) {
	if *writeGoldens {
		makeGoldens(t, golds, files, texts, text)
	}
	f, err := os.Open(golds)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var encoders []Encoder
	for _, name := range files {
		encoders = append(encoders, load(t, name).NewEncoder())
	}
	n := 0
	for d := json.NewDecoder(unzipped); ; n++ {
		var g golden
		if err := d.Decode(&g); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for i, e := range encoders {
			if got := e.Append(nil, []byte(g.Text)); !slices.Equal(got, g.IDs[i]) {
				t.Fatalf("%s: text %d, %q: ids %v, the judge has %v", files[i], n, g.Text, got, g.IDs[i])
			}
		}
	}
	if n != texts {
		t.Errorf("compared %d texts, want %d", n, texts)
	}
}

func makeGoldens(t *testing.T, golds string, files []string, n int, text func(int) string) {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = text(i)
	}
	goldens := make([]golden, n)
	for _, name := range files {
		i := 0
		ask(t, name, slices.Values(texts), func(text string, a answer) {
			goldens[i].Text = text
			goldens[i].IDs = append(goldens[i].IDs, a.ids)
			i++
		})
	}
	var b bytes.Buffer
	zipped, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	for _, g := range goldens {
		if err := json.NewEncoder(zipped).Encode(g); err != nil {
			t.Fatal(err)
		}
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(golds, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestJudge compares ids and decoded text with the judge's.
func TestJudge(t *testing.T) {
	if os.Getenv("ATOLL_LONG") == "" {
		t.Skip("asks the judge about a million texts: set ATOLL_LONG=1")
	}
	if err := exec.Command("python3", "-c", "import tokenizers").Run(); err != nil {
		t.Skip("there is no python3 that has tokenizers")
	}
	var files []string
	for _, name := range familyFiles {
		files = append(files, familyFile(name))
	}
	files = append(files, markedForms(t)...)
	files = append(files, filepath.SplitList(os.Getenv("ATOLL_TOKENIZERS"))...)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { judge(t, file) })
	}
}

func judge(t *testing.T, file string) {
	tokenizer := load(t, file)
	encoder := tokenizer.NewEncoder()
	n, size := 0, 0
	random := newTexts(uint64(len(file)))
	texts := func(yield func(string) bool) {
		for range judgedTexts {
			if !yield(random.next()) {
				return
			}
		}
		for _, name := range filepath.SplitList(os.Getenv("ATOLL_TEXTS")) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Error(err)
			}
			whole := strings.ToValidUTF8(string(text), "\ufffd")
			for line := range strings.Lines(whole) {
				if !yield(line) {
					return
				}
			}
			if !yield(whole) {
				return
			}
		}
	}
	ask(t, file, texts, func(text string, want answer) {
		n, size = n+1, size+len(text)
		got := encoder.Append(nil, []byte(text))
		if !slices.Equal(got, want.ids) {
			t.Fatalf("text %d, %q: ids %v, the judge has %v", n, text, got, want.ids)
		}
		if decoded := Decode(tokenizer, nil, got); string(decoded) != want.text && utf8.Valid(decoded) {
			t.Fatalf("text %d, %q: decoded to %q, the judge has %q", n, text, decoded, want.text)
		}
	})
	t.Logf("%s: %d texts of %d bytes have the judge's ids", tokenizer.Family(), n, size)
}

// ask hands each text and the judge's answer to a function, in order.
func ask(t *testing.T, tokenizer string, texts func(func(string) bool), each func(string, answer)) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "python3", "testdata/judge/judge.py", "encode", tokenizer)
	c.Stderr = os.Stderr
	to, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 1<<18) // more than what the pipes and the judge hold
	go func() {
		defer to.Close()
		defer close(asked)
		w := bufio.NewWriter(to)
		defer w.Flush()
		encode := json.NewEncoder(w)
		for text := range texts {
			if encode.Encode(text) != nil {
				return
			}
			asked <- text
		}
	}()
	d := json.NewDecoder(bufio.NewReader(from))
	for text := range asked {
		var a answer
		if err := d.Decode(&a); err != nil {
			t.Fatalf("the judge of %s ended: %v", tokenizer, err)
		}
		each(text, a)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
}

// texts makes texts of what tokenizers differ in.
type texts struct{ *rand.Rand }

func newTexts(seed uint64) texts { return texts{rand.New(rand.NewPCG(seed, 0))} }

func (r texts) next() string {
	var b strings.Builder
	for range 1 + r.IntN(12) {
		b.WriteString(r.part())
	}
	return b.String()
}

func (r texts) part() string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	switch r.IntN(18) {
	case 0, 1:
		return pick(" the", "rays ", "Light", "unseen", "IT", " don", "we", "ſ", "naïve", "ÉCLAIR")
	case 2:
		return pick("'s", "'S", "'ſ", "'t", "'re", "'RE", "'Ve", "'ll", "'lL", "'D", "'m", "'", "''", "’s", "'r", "'l")
	case 3:
		return pick(" ", "  ", "\n", "\r\n", "\t", " \n", "\n\n ", "\u00a0", "\u3000", "\u2028", "\u0085", "\v", "   \r", "\u200b", "\u180e")
	case 4:
		return fmt.Sprint(r.Uint64() >> r.IntN(64))
	case 5:
		return pick("١٢٣", "½", "Ⅷ", "四", "²", "①②③④", "\U0001d7d8", "०१२", "\U00010d40", "\U00011de0")
	case 6:
		return pick(".", "...", "!?", "--", "//", "{}", "();", "==", "<", "<|", "€", "，", "。", "¿", "\x00", "\x7f")
	case 7:
		return pick("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|end_of_text|>", "<tool_call>", "<|endoftext", "|endoftext|>",
			"<|begin_of_text|>", "<|reserved_special_token_1|>", "e\u0302\u0301<>", "ế<>", "ê\u0301<>", "<think>", "</think>")
	case 8:
		return pick("мир", "κόσμος", "世界", "すべて", "자유", "أحرار", "שווים", "मनुष्यों", "มนุษย์", "ადამიანი", "người", "ⴰⵎⴰⵣⵉⵖ")
	case 9:
		return pick("👍🏽", "👨‍👩‍👧", "🇫🇷", "❤️", "☃", "\ufe0f", "\u200d", "\ufeff", "\ufffd")
	case 10: // marks, more than one
		s := pick("a", "E", "o", "क", "\u1100", " ", "ά", "\u0344", "Å", "\u0958", "\U0001d15e")
		for range r.IntN(1 << r.IntN(6)) {
			s += string(runeOf(r, 0x300, 0x36f))
		}
		return s
	case 11:
		return string([]rune{runeOf(r, 0x1100, 0x11ff), runeOf(r, 0x1160, 0x11ff), runeOf(r, 0xac00, 0xd7a3), runeOf(r, 0x11a7, 0x11c3)})
	case 12:
		return strings.Repeat(pick("a", " ", "=", "\n", "ab", "0", "é", "中"), 1+r.IntN(80))
	case 13:
		return string([]rune{runeOf(r, 0, 0x7f), runeOf(r, 0, 0x7ff), runeOf(r, 0x80, 0x24f)})
	case 14:
		return string([]rune{runeOf(r, 0x300, 0x1fff), runeOf(r, 0x800, 0xd7ff), runeOf(r, 0xe000, 0xffff)})
	case 15:
		return pick("▁", "▁▁", " ▁", "▁ ", "</s>", "<s>", "<eos>", "<b>", "[INST]", "<0x0A>", "<0x", "\n\n\n", "<start_of_turn>", "\r\n\n")
	case 16:
		return pick("function return", "  if err != nil {", "\t\t\t}", "of the", "для этого", "这个文件", "هذا الحقل", "कृपया")
	}
	return string([]rune{runeOf(r, 0x10000, 0x1ffff), runeOf(r, 0x10000, 0x3ffff), runeOf(r, 0x11000, 0x11fff), runeOf(r, 0, 0x10ffff)})
}

// runeOf returns a rune from first to last. Surrogates, which are no runes, become U+FFFD.
func runeOf(r texts, first, last rune) rune {
	c := first + r.Int32N(last-first+1)
	if c >= 0xd800 && c < 0xe000 {
		return utf8.RuneError
	}
	return c
}

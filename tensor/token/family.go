package token

import (
	"fmt"
	"slices"
	"strings"
)

// family is how tokenizers of one origin cut a text into words.
type family struct {
	name   string
	nfc    bool // the text is normalized first
	digits bool // the step Digits comes before split
	split  splitter
	steps  []step // of the pre-tokenizer, as tokenizer.json has them
}

// step is one step of a pre-tokenizer, with all that bears on the outcome.
type step struct {
	kind     string // Split, Digits or ByteLevel
	pattern  string // of Split
	useRegex bool   // of ByteLevel: words are those of splitGPT2
}

const (
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// families are those on which the judge was asked.
var families = []family{
	{"GPT-2", false, false, splitGPT2, []step{{kind: "ByteLevel", useRegex: true}}},
	{"Llama 3", false, false, splitLlama3, []step{{kind: "Split", pattern: llama3Pattern}, {kind: "ByteLevel"}}},
	{"Qwen 2.5", true, false, splitQwen2, []step{{kind: "Split", pattern: qwen2Pattern}, {kind: "ByteLevel"}}},
	{"SmolLM", false, true, splitGPT2, []step{{kind: "Digits"}, {kind: "ByteLevel", useRegex: true}}},
}

// Families returns the names of the families that Parse takes.
func Families() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// familyOf finds the family of a file.
func familyOf(f *file) (family, error) {
	steps, err := f.PreTokenizer.steps()
	if err != nil {
		return family{}, err
	}
	nfc, err := f.Normalizer.isNFC()
	if err != nil {
		return family{}, err
	}
	for _, known := range families {
		if slices.Equal(known.steps, steps) {
			if known.nfc != nfc {
				return family{}, fmt.Errorf("its pre_tokenizer is that of %s, whose normalizer is %s: %w", known.name, normalizerName(known.nfc), errFamily)
			}
			return known, nil
		}
	}
	return family{}, fmt.Errorf("its pre_tokenizer is %s: %w", describe(steps), errFamily)
}

// errFamily says what is taken instead.
var errFamily = fmt.Errorf("use a byte-level BPE of one of the families that are known to agree with Hugging Face's tokenizers: %s",
	strings.Join(Families(), ", "))

func normalizerName(nfc bool) string {
	if nfc {
		return "NFC"
	}
	return "null"
}

// maxPattern is how much of a pattern an error shows.
const maxPattern = 120

func describe(steps []step) string {
	var names []string
	for _, s := range steps {
		switch {
		case s.kind == "Split":
			names = append(names, fmt.Sprintf("Split by %.*q", maxPattern, s.pattern))
		case s.useRegex:
			names = append(names, s.kind+" with its own pattern")
		default:
			names = append(names, s.kind)
		}
	}
	if len(names) == 0 {
		return "null"
	}
	return strings.Join(names, ", then ")
}

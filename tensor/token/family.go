package token

import (
	"fmt"
	"slices"
	"strings"
)

// family is how tokenizers of one origin cut a text into words.
type family struct {
	name   string
	normal string // what normalizes the text first, as describe has it
	steps  []step // of the pre-tokenizer, as tokenizer.json has them
	split  splitter
	digits bool   // the step Digits comes before split
	marked bool   // tokens have a mark for a space; without it they have the alphabet of ByteLevel
	late   bool   // the pre-tokenizer marks spaces, not the normalizer
	prefix prefix // is put before texts
}

// prefix is where a space that is not in the text is put before it.
type prefix int

const (
	noPrefix    prefix = iota
	firstPrefix        // before the text
	everyPrefix        // and after each added token
)

// step is one step of a pre-tokenizer, with all that bears on the outcome.
type step struct {
	kind     string // Split, Digits, ByteLevel or Metaspace
	pattern  string // of Split
	useRegex bool   // of ByteLevel: words are those of splitGPT2
}

const (
	llama3Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	markSpaces = `Replace " " by "` + mark + `"`
	prefixMark = `Prepend "` + mark + `"`

	unmark      = `Replace "` + mark + `" by " ", then ByteFallback, then Fuse` // the decoder of the families with marks
	stripPrefix = `, then Strip " " 1 0`                                        // which those with a prefix have
)

// splitSpaces is the step that splits at spaces.
var splitSpaces = step{kind: "Split", pattern: " "}

// families are those on which the judge was asked.
var families = []family{
	{name: "GPT-2", normal: "null", steps: []step{{kind: "ByteLevel", useRegex: true}}, split: splitGPT2},
	{name: "Llama 3", normal: "null", steps: []step{{kind: "Split", pattern: llama3Pattern}, {kind: "ByteLevel"}}, split: splitLlama3},
	{name: "Qwen 2.5", normal: "NFC", steps: []step{{kind: "Split", pattern: qwen2Pattern}, {kind: "ByteLevel"}}, split: splitQwen2},
	{name: "SmolLM", normal: "null", steps: []step{{kind: "Digits"}, {kind: "ByteLevel", useRegex: true}}, split: splitGPT2, digits: true},
	{name: "Llama 2", normal: prefixMark + ", then " + markSpaces, split: splitNothing, marked: true, prefix: everyPrefix},
	{name: "Mistral", normal: "null", steps: []step{{kind: "Metaspace"}}, split: splitNothing, marked: true, late: true},
	{name: "Gemma", normal: markSpaces, split: splitNothing, marked: true},
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
	normal := f.Normalizer.describe()
	if strings.HasSuffix(normal, markSpaces) { // which leaves no space to split at
		steps = slices.DeleteFunc(steps, func(s step) bool { return s == splitSpaces })
	}
	for _, known := range families {
		if known.normal != normal || !slices.Equal(known.steps, steps) {
			continue
		}
		if known.late {
			err = known.metaspace(f.PreTokenizer)
		}
		return known, err
	}
	return family{}, fmt.Errorf("its normalizer is %.*s and its pre_tokenizer is %s: %w", maxPattern, normal, describeSteps(steps), errFamily)
}

// metaspace takes in the options of a pre-tokenizer that marks spaces.
func (f *family) metaspace(c *component) error {
	if c.Type == "Sequence" {
		c = c.PreTokenizers[0]
	}
	if c.Split == nil || *c.Split {
		f.split = splitSpace
	}
	switch c.PrependScheme {
	case "", "always":
		f.prefix = everyPrefix
	case "first":
		f.prefix = firstPrefix
	case "never":
	default:
		return fmt.Errorf("its pre_tokenizer has the prepend_scheme %.*q: %w", maxPattern, c.PrependScheme, errFamily)
	}
	return nil
}

// errFamily says what is taken instead.
var errFamily = fmt.Errorf("use a BPE of one of the families that are known to agree with Hugging Face's tokenizers: %s",
	strings.Join(Families(), ", "))

// maxPattern is how much of a pattern an error shows.
const maxPattern = 120

func describeSteps(steps []step) string {
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

package token

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// file is tokenizer.json, as far as encoding and decoding without special tokens go by it.
type file struct {
	AddedTokens  []addedToken `json:"added_tokens"`
	Normalizer   *component   `json:"normalizer"`
	PreTokenizer *component   `json:"pre_tokenizer"`
	Decoder      *component   `json:"decoder"`
	Model        model        `json:"model"`
}

type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// component is a normalizer, a pre-tokenizer or a decoder.
type component struct {
	Type          string       `json:"type"`
	Normalizers   []*component `json:"normalizers"`
	PreTokenizers []*component `json:"pretokenizers"`
	Decoders      []*component `json:"decoders"`
	Pattern       struct {
		Regex  *string `json:"Regex"`
		String *string `json:"String"`
	} `json:"pattern"`
	Behavior         string `json:"behavior"`
	Invert           bool   `json:"invert"`
	IndividualDigits bool   `json:"individual_digits"`
	AddPrefixSpace   bool   `json:"add_prefix_space"`
	UseRegex         *bool  `json:"use_regex"` // absent in files of old versions: true
	Prepend          string `json:"prepend"`
	Content          string `json:"content"`
	Start            int    `json:"start"`
	Stop             int    `json:"stop"`
	Replacement      string `json:"replacement"`
	PrependScheme    string `json:"prepend_scheme"` // absent in files of old versions: always
	Split            *bool  `json:"split"`          // absent in files of old versions: true
}

type model struct {
	Type                    string           `json:"type"` // absent in files of old versions
	Dropout                 *float64         `json:"dropout"`
	ContinuingSubwordPrefix string           `json:"continuing_subword_prefix"`
	EndOfWordSuffix         string           `json:"end_of_word_suffix"`
	FuseUnk                 bool             `json:"fuse_unk"`
	ByteFallback            bool             `json:"byte_fallback"`
	IgnoreMerges            bool             `json:"ignore_merges"`
	Vocab                   map[string]int32 `json:"vocab"`
	Merges                  []mergePair      `json:"merges"`
}

// mergePair is a merge: a list of two tokens, in old versions both in one string with a
// space between them.
type mergePair [2]string

// UnmarshalJSON implements json.Unmarshaler.
func (p *mergePair) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		var ok bool
		if p[0], p[1], ok = strings.Cut(s, " "); !ok || strings.Contains(p[1], " ") {
			return fmt.Errorf("merge %q is not two tokens with a space between them", s)
		}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	if len(list) != 2 {
		return fmt.Errorf("merge %q is not two tokens", list)
	}
	p[0], p[1] = list[0], list[1]
	return nil
}

// maxSteps bounds the steps of a pre-tokenizer: families have at most two.
const maxSteps = 8

// steps returns what a pre-tokenizer does, or an error that names what no family does.
func (c *component) steps() ([]step, error) {
	switch {
	case c == nil:
		return nil, nil
	case c.Type == "Sequence":
		var all []step
		for _, inner := range c.PreTokenizers {
			if inner == nil || inner.Type == "Sequence" || len(all) == maxSteps {
				return nil, fmt.Errorf("its pre_tokenizer is a Sequence of other things than up to %d steps: %w", maxSteps, errFamily)
			}
			steps, err := inner.steps()
			if err != nil {
				return nil, err
			}
			all = append(all, steps...)
		}
		return all, nil
	case c.Type == "ByteLevel" && !c.AddPrefixSpace:
		return []step{{kind: c.Type, useRegex: c.UseRegex == nil || *c.UseRegex}}, nil
	case c.Type == "Digits" && c.IndividualDigits:
		return []step{{kind: c.Type}}, nil
	case c.Type == "Split" && c.Pattern.Regex != nil && c.Behavior == "Isolated" && !c.Invert:
		return []step{{kind: c.Type, pattern: *c.Pattern.Regex}}, nil
	case c.Type == "Split" && c.Pattern.String != nil && *c.Pattern.String == " " && c.Behavior == "MergedWithPrevious" && !c.Invert:
		return []step{splitSpaces}, nil
	case c.Type == "Metaspace" && c.Replacement == mark:
		return []step{{kind: c.Type}}, nil
	}
	return nil, fmt.Errorf("its pre_tokenizer has the step %s%s: %w", c.Type, c.options(), errFamily)
}

// options says what makes a step of a known kind another one.
func (c *component) options() string {
	switch c.Type {
	case "ByteLevel":
		return " with add_prefix_space"
	case "Digits":
		return " without individual_digits"
	case "Split":
		return " with another pattern than a Regex, another behavior than Isolated, or invert"
	case "Metaspace":
		return " with another replacement than " + mark
	}
	return ""
}

// describe names what a normalizer or a decoder does.
func (c *component) describe() string {
	switch {
	case c == nil:
		return "null"
	case c.Type == "Sequence":
		var names []string
		for _, inner := range slices.Concat(c.Normalizers, c.Decoders) {
			if inner != nil && inner.Type == "Sequence" {
				return "a Sequence of Sequences"
			}
			names = append(names, inner.describe())
		}
		return cmp.Or(strings.Join(names, ", then "), "null")
	case c.Type == "Replace" && c.Pattern.String != nil:
		return fmt.Sprintf("Replace %q by %q", *c.Pattern.String, c.Content)
	case c.Type == "Prepend":
		return fmt.Sprintf("Prepend %q", c.Prepend)
	case c.Type == "Strip":
		return fmt.Sprintf("Strip %q %d %d", c.Content, c.Start, c.Stop)
	}
	return c.Type
}

// check refuses models that no family has.
func (m *model) check() error {
	for _, c := range []struct {
		wrong bool
		what  string
	}{
		{m.Type != "BPE" && m.Type != "", "is of type " + m.Type},
		{m.Dropout != nil && *m.Dropout != 0, "has dropout"},
		{m.ContinuingSubwordPrefix != "", "has continuing_subword_prefix"},
		{m.EndOfWordSuffix != "", "has end_of_word_suffix"},
	} {
		if c.wrong {
			return fmt.Errorf("its model %s: %w", c.what, errFamily)
		}
	}
	return nil
}

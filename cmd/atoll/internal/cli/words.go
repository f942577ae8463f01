package cli

import (
	"errors"
	"regexp"

	"github.com/alecthomas/kong"
)

// says is what a library says of something wrong, and how people read it.
type says struct {
	pattern *regexp.Regexp
	plain   string
}

// kongSays is of a wrong value: the value, and what to write.
var kongSays = []says{
	{regexp.MustCompile(`expected a valid 32 bit uint but got (".*")`), "$1 is no whole number from 0 to 4294967295"},
	{regexp.MustCompile(`expected a valid \d+ bit u?int but got (".*")`), "$1 is no whole number; write it like 4"},
	{regexp.MustCompile(`expected a float but got (".*") \(.*\)`), "$1 is no number; write it like 0.5"},
	{regexp.MustCompile(`expected duration but got (".*"): .*`), "$1 is no time; write it with a unit, like 500ms, 30s or 1h30m"},
	{regexp.MustCompile(`expected .* value but got "EOL" \(<EOL>\)`), "no value stands behind it; write one"},
	{regexp.MustCompile(`^expected "(<.*>)( \.\.\.)?"`), "$1 is missing: type it behind the command"},
	{regexp.MustCompile(`^missing flags: (.*)`), "missing flags: $1; type them too"},
	{regexp.MustCompile(`^unexpected argument (\S+)$`), "unexpected argument $1: there is no place for it; leave it out"},
	{regexp.MustCompile(`^open (.*): no such file or directory$`), "--config: there is no file $1; type the name of one, or leave it out"},
}

// Plainly is an error of kong in those words.
func Plainly(err error) error {
	if wrong := (*kong.ParseError)(nil); !errors.As(err, &wrong) || errors.As(err, new(*UsageError)) {
		return err
	}
	text := err.Error()
	for _, says := range kongSays {
		if says.pattern.MatchString(text) {
			return BadUsage("%s", says.pattern.ReplaceAllString(text, says.plain))
		}
	}
	return err
}

// jsonSays is of a value of another kind, of an unknown field or of what is no JSON, and how people read it.
var jsonSays = []says{
	{regexp.MustCompile(`json: cannot unmarshal (.+?) into Go value of type (struct \{.*\}|[^\s:;,]+)`), "it is of the kind $1, and <$2> belongs there"},
	{regexp.MustCompile(`json: cannot unmarshal (.+?) into Go struct field (?:\w*\.)*(\S+) of type (struct \{.*\}|[^\s:;,]+)`), "$2 is of the kind $1, and <$3> belongs there"},
	{regexp.MustCompile(`and <u?int\d*> belongs`), "and a whole number belongs"},
	{regexp.MustCompile(`and <float\d+> belongs`), "and a number belongs"},
	{regexp.MustCompile(`and <string> belongs`), "and a text in quotes belongs"},
	{regexp.MustCompile(`and <\*?bool> belongs`), "and true or false belongs"},
	{regexp.MustCompile(`and <.+> belongs`), "and another belongs"},
	{regexp.MustCompile(`json: (unknown field)`), "$1"},
	{regexp.MustCompile(`unexpected end of JSON input`), "it is empty or cut off: fetch or write it anew"},
	{regexp.MustCompile(`invalid character ('.+?') [^:;,]*`), "it is no JSON from a character $1 on: fetch or write it anew"},
}

// InWords is the text of an error without words of Go.
func InWords(err error) string {
	text := err.Error()
	for _, says := range jsonSays {
		text = says.pattern.ReplaceAllString(text, says.plain)
	}
	return text
}

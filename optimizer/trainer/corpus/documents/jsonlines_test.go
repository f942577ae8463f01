package documents

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzJSONLine: a line gives the text that encoding/json finds in it, or an error where that has one.
func FuzzJSONLine(f *testing.F) {
	for _, line := range []string{
		`{"text":"the rays"}`, `{"a":[1,{"text":"no"}],"text":"of \u00e9 \ud83d\ude00 \n light","b":null}`, `{"text":null}`, `{"text":1}`, `{"text":["a"]}`, `{"text":["a",null,"b"]}`, `{"text":["a",["b"]]}`,
		`{"text":"first","text":"last"}`, `{"Text":"another"}`, `{}`, `[]`, `"text"`, `{"text":"a"} x`, `{"text":"a"}{}`, `{"text":"\ud800"}`, "{\"text\":\"\xff\"}",
		`{"text":"a",}`, `{"text":"a"`, `null`, ` { "text" : "a" } `, "{\"te\xffxt\":1}", `{"t\u0065xt":"escaped"}`, `{"text":"a","text":null}`, `{"text":"a","text":2}`, `{"text":1,"text":"a"}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		j := &jsonLines{o: options, line: line}
		err := j.find()
		got := ""
		if err == nil {
			got = string(j.text)
		}
		want, ok := textByStandard(line)
		if (err == nil) != ok || got != want {
			t.Fatalf("line %q gives %q, %v; encoding/json gives %q, %v", line, got, err, want, ok)
		}
		if err2 := j.find(); (err2 == nil) != (err == nil) || err == nil && string(j.text) != got {
			t.Fatalf("line %q gives %q, %v when it is read again", line, j.text, err2)
		}
	})
}

// textByStandard is the judge.
func textByStandard(line []byte) (string, bool) {
	if !utf8.Valid(line) {
		return "", false
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(line, &object) != nil || object == nil || object["text"] == nil {
		return "", false
	}
	var value any
	if json.Unmarshal(object["text"], &value) != nil {
		return "", false
	}
	texts, ok := flat(value)
	return strings.Join(texts, "\n"), ok
}

// flat are the texts of a value, which has nothing else.
func flat(value any) (texts []string, ok bool) {
	switch v := value.(type) {
	case nil:
		return nil, true
	case string:
		return []string{v}, true
	case []any:
		for _, item := range v {
			more, ok := flat(item)
			if !ok {
				return nil, false
			}
			texts = append(texts, more...)
		}
		return texts, true
	}
	return nil, false
}

// A path leads through objects and lists of them, as messages have their content.
func TestPathsThroughLists(t *testing.T) {
	for _, c := range []struct{ field, line, want string }{
		{"messages.content", `{"messages":[{"role":"user","content":"why"},{"role":"it","content":"so"},{"role":"end"},7]}`, "why\nso"},
		{"messages.content", `{"messages":[{"content":[{"text":"a"}]}]}`, `field "messages.content" is not text`},
		{"messages.content.text", `{"messages":[{"content":[{"text":"a"},{"image":"b"}]},{"content":[{"text":"c"}]}]}`, "a\nc"},
		{"messages.content", `{"messages":[[{"content":"a"}],[]]}`, "a"},
		{"messages.content", `{"messages":[]}`, ""},
		{"messages.content", `{"messages":[{"role":"user"}]}`, `no field "messages.content": text is in "messages.role"`},
		{"text", `{"messages":[{"role":"user","content":"why"}]}`, `no field "text": text is in "messages.content" "messages.role"`},
		{"m.c", `{"m":{"c":"a"},"m":[{"c":"b"},{"c":null}]}`, "a\nb"},
	} {
		o := options
		o.Field = c.field
		j := &jsonLines{o: o, line: []byte(c.line)}
		got := ""
		if err := j.find(); err != nil {
			got = err.Error()
		} else {
			got = string(j.text)
		}
		if got != c.want && (!strings.Contains(got, c.want) || c.want == "") {
			t.Errorf("%s of %s: %q, want %q", c.field, c.line, got, c.want)
		}
	}
}

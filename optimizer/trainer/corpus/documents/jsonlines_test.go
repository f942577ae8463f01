package documents

import (
	"bytes"
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
	var text *string
	if bytes.Equal(bytes.TrimSpace(object["text"]), []byte("null")) {
		return "", true
	}
	if json.Unmarshal(object["text"], &text) == nil {
		return *text, true
	}
	var list []string
	if json.Unmarshal(object["text"], &list) != nil {
		return "", false
	}
	return strings.Join(list, "\n"), true
}

package documents

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonLines reads a field of JSON objects, one on a line. Blank lines are skipped.
type jsonLines struct {
	*counter
	in *bufio.Reader
	o  Options

	number  int
	line    []byte
	decoder jsontext.Decoder
	text    []byte
	kind    jsontext.Kind // of the field; 0: it is not there
}

var errLines = errors.New("it is not one JSON object a line: write such lines, from an array with `jq -c '.[]'`, from objects with `jq -c .`, " +
	"or leave broken ones out with atoll data build --skip-broken")

// isLines tells whether a text is lines of JSON: its name says so, or its first line is an object that has text in the field.
func (f File) isLines(in *bufio.Reader, o Options) (bool, error) {
	ending, _ := f.name()
	if ending == ".jsonl" || ending == ".ndjson" {
		return true, nil
	}
	head, err := peek(in, bufferSize)
	line, _, ended := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
	if err != nil || len(line) == 0 || line[0] != '{' && line[0] != '[' {
		return false, err
	}
	j := jsonLines{o: o, line: line}
	err = j.scan()
	long, named := !ended && len(head) == bufferSize, ending == ".json" && !f.found
	switch {
	case err == nil && (j.kind == '"' || j.kind == '[' || named), long && (j.kind != 0 || named && line[0] == '{'):
		return true, nil
	case ending == ".json" && !f.found:
		return false, errLines
	case ending == ".json":
		o.Tally["files of JSON, not one object a line, taken as text"]++
	}
	return false, nil
}

// Next returns the next line's text.
func (j *jsonLines) Next() (Document, error) {
	for {
		if err := j.readLine(); err != nil {
			return Document{}, err
		}
		if len(bytes.TrimSpace(j.line)) == 0 {
			continue
		}
		if err := j.find(); err != nil {
			return Document{}, brokenError{fmt.Errorf("line %d: %w", j.number, err)}
		}
		if len(j.text) > 0 {
			return Document{Text: j.text}, nil
		}
		j.o.Tally[noText]++
	}
}

func (j *jsonLines) readLine() error {
	j.line = j.line[:0]
	j.number++
	for {
		part, err := j.in.ReadSlice('\n')
		j.line = append(j.line, part...)
		switch {
		case len(j.line) > maxDocument:
			return fmt.Errorf("line %d has more than %d bytes, and %w", j.number, maxDocument, errLines)
		case err == bufio.ErrBufferFull:
		case err == nil || err == io.EOF && len(j.line) > 0:
			j.line = bytes.TrimPrefix(j.line, []byte(utf8Mark)) // where files with one were joined
			return nil
		default:
			return err
		}
	}
}

// find reads the field of the line's object.
func (j *jsonLines) find() error {
	err := j.scan()
	switch {
	case err != nil:
		return err
	case j.kind == 0:
		var object map[string]any
		_ = json.Unmarshal(j.line, &object) // it was scanned
		return fmt.Errorf("no field %q: %s", j.o.Field, texts(fieldsOf("", object)))
	case j.kind != '"' && j.kind != 'n' && j.kind != '[':
		return fmt.Errorf("field %q is not text", j.o.Field)
	}
	return nil
}

// scan reads the line's object, which may not have the field. encoding/json reads a line three times for it.
func (j *jsonLines) scan() error {
	j.text, j.kind = j.text[:0], 0
	if err := checkUTF8(j.line, 0); err != nil {
		return err
	}
	// As encoding/json: of a field that is there twice the last counts, and half a pair of \u escapes is replaced.
	j.decoder.Reset(bytes.NewBuffer(j.line), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if j.decoder.PeekKind() != '{' || j.object(j.o.Field) != nil {
		return errLines
	}
	if _, err := j.decoder.ReadToken(); err != io.EOF {
		return errLines
	}
	return nil
}

// object reads the object that is next in the decoder, and the field in it at a path of names with dots between.
func (j *jsonLines) object(path string) error {
	_, err := j.decoder.ReadToken()
	for err == nil && j.decoder.PeekKind() != '}' {
		var token jsontext.Token
		if token, err = j.decoder.ReadToken(); err != nil {
			return err
		}
		rest, is := strings.CutPrefix(path, token.String())
		switch {
		case is && rest == "":
			err = j.value()
		case is && rest[0] == '.' && j.decoder.PeekKind() == '{':
			err = j.object(rest[1:])
		default:
			err = j.decoder.SkipValue()
		}
	}
	if err == nil {
		_, err = j.decoder.ReadToken()
	}
	return err
}

// value reads the field's value: text, or texts of a list, one on a line.
func (j *jsonLines) value() error {
	raw, err := j.decoder.ReadValue()
	if err != nil {
		return err
	}
	j.text, j.kind = j.text[:0], raw.Kind()
	var list []string
	switch {
	case j.kind == '"':
		j.text, _ = jsontext.AppendUnquote(j.text, raw) // half a pair is replaced
	case j.kind == '[' && json.Unmarshal(raw, &list) != nil:
		j.kind = 'f' // it is not of texts
	}
	j.text = append(j.text, strings.Join(list, "\n")...)
	return nil
}

// fieldsOf are the paths of texts, and of lists of them.
func fieldsOf(path string, v any) (all []string) {
	if list, is := v.([]any); is && len(list) > 0 {
		if text, is := list[0].(string); is {
			v = text
		}
	}
	switch v := v.(type) {
	case string:
		return []string{path[1:]}
	case map[string]any:
		for name := range v {
			all = append(all, fieldsOf(path+"."+name, v[name])...)
		}
	}
	return all
}

// texts says which fields have text.
func texts(fields []string) string {
	if len(fields) == 0 {
		return "none has text"
	}
	slices.Sort(fields)
	return fmt.Sprintf("text is in %s: take one with `atoll data build --field NAME`", strings.Trim(fmt.Sprintf("%q", fields), "[]"))
}

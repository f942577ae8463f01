package documents

import (
	"bufio"
	"bytes"
	"cmp"
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
	kind    jsontext.Kind // of the field, a list counting as its texts; 0: it is not there
	lists   int           // around what is read
}

var errLines = errors.New("it is not one JSON object a line: write such lines, from an array with `jq -c '.[]'`, from objects with `jq -c .`, " +
	"or leave broken ones out with atoll data build --skip-broken N")

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
	case err == nil && (j.kind == '"' || named), long && (j.kind != 0 || named && line[0] == '{'):
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
	case j.kind != '"' && j.kind != 'n':
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

// object reads the object that is next in the decoder, and the field in it at a path of names with dots between. Lists on the way
// are read item by item.
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
		case is && rest[0] == '.' && j.decoder.PeekKind() == '[':
			err = j.list(rest[1:])
		default:
			err = j.decoder.SkipValue()
		}
	}
	if err == nil {
		_, err = j.decoder.ReadToken()
	}
	return err
}

// value reads the field's value: text, or texts of lists, one on a line. Of a field that is there twice the last counts.
func (j *jsonLines) value() error {
	if j.lists == 0 {
		j.text, j.kind = j.text[:0], 0
	}
	if j.decoder.PeekKind() == '[' {
		return j.list("")
	}
	raw, err := j.decoder.ReadValue()
	switch kind := raw.Kind(); {
	case err != nil || j.kind == 'f': // it is not of texts alone
	case kind == 'n':
		j.kind = cmp.Or(j.kind, kind)
	case kind != '"':
		j.kind = 'f'
	default:
		if j.kind == kind {
			j.text = append(j.text, '\n')
		}
		j.kind = kind
		j.text, _ = jsontext.AppendUnquote(j.text, raw) // half a pair is replaced
	}
	return err
}

// list reads the list that is next in the decoder: values, or objects that have the field at a path.
func (j *jsonLines) list(path string) error {
	_, err := j.decoder.ReadToken()
	if j.lists++; err == nil && j.decoder.PeekKind() == ']' {
		j.kind = cmp.Or(j.kind, 'n')
	}
	for err == nil && j.decoder.PeekKind() != ']' {
		switch {
		case path == "":
			err = j.value()
		case j.decoder.PeekKind() == '{':
			err = j.object(path)
		case j.decoder.PeekKind() == '[':
			err = j.list(path)
		default:
			err = j.decoder.SkipValue()
		}
	}
	if j.lists--; err == nil {
		_, err = j.decoder.ReadToken()
	}
	return err
}

// fieldsOf are the paths of texts, of a list those of its first item.
func fieldsOf(path string, v any) (all []string) {
	switch v := v.(type) {
	case []any:
		if len(v) > 0 {
			return fieldsOf(path, v[0])
		}
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
		return "nor has any other text"
	}
	slices.Sort(fields)
	return fmt.Sprintf("text is in %s: take one with `atoll data build --field NAME`", strings.Trim(fmt.Sprintf("%q", fields), "[]"))
}

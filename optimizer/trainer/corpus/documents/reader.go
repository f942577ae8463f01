package documents

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"
)

const (
	// MaxText is the longest document of a file of text: some ten pages of a book, which is
	// more than the context of a model, and little enough that a book has parts to hold out.
	MaxText = 64 << 10
	// maxDocument bounds a line of JSON and a row: they are held in memory.
	maxDocument = 64 << 20
	// maxZstdWindow bounds what a packed file may make its reader hold. It is the largest
	// window that the zstd program unpacks unasked.
	maxZstdWindow = 128 << 20
)

// Document is one document: its text or, of a file of tokens, its tokens.
type Document struct {
	Text   []byte // until the next call of Next
	Tokens []int32
}

// Options say what to read in a file.
type Options struct {
	Field string // of JSON lines, or column of Parquet
	End   int32  // token that ends a document, in files of tokens; -1: none
}

// Reader reads the documents of a file.
type Reader interface {
	// Next returns the next document that is not empty, or io.EOF.
	Next() (Document, error)
	// Offset is how far it has come in the file, in bytes.
	Offset() int64
	Close() error
}

// Open opens a file. Errors name it.
func (f File) Open(o Options) (Reader, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	r, err := f.reader(file, o)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("read %s: %w", f.Path, err)
	}
	return &named{r, file, f.Path}, nil
}

// named closes the file, and names it in errors.
type named struct {
	reader
	file *os.File
	path string
}

// reader is a Reader of one format.
type reader interface {
	Next() (Document, error)
	Offset() int64
}

func (n *named) Close() error { return n.file.Close() }

func (n *named) Next() (Document, error) {
	d, err := n.reader.Next()
	if err != nil && err != io.EOF {
		err = fmt.Errorf("read %s: %w", n.path, err)
	}
	return d, err
}

func (f File) reader(file *os.File, o Options) (reader, error) {
	kind, packing := f.format()
	if kind == Parquet {
		if packing != "" {
			return nil, errors.New("a packed Parquet file: unpack it, its columns are packed already")
		}
		return newColumn(file, f.Size, o.Field)
	}
	counted := &counter{r: file}
	unpacked, err := unpack(counted, packing)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(unpacked, 1<<18)
	switch kind {
	case JSONLines:
		return &jsonLines{counter: counted, in: in, field: o.Field}, nil
	case Tokens:
		return newTokens(counted, in, o.End)
	}
	head, err := in.Peek(binaryProbe)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if f.found && isBinary(head) {
		in.Reset(bytes.NewReader(nil)) // it has no documents
	}
	return &textReader{counter: counted, in: in}, nil
}

// counter counts what was read of a file.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// Offset is the number of bytes read.
func (c *counter) Offset() int64 { return c.n }

func unpack(r io.Reader, packing string) (io.Reader, error) {
	switch packing {
	case ".gz":
		return gzip.NewReader(r)
	case ".zst":
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, err
		}
		return d, nil
	}
	return r, nil
}

// textReader cuts a text into documents.
type textReader struct {
	*counter
	in *bufio.Reader

	buf  []byte
	from int // what is before was handed out
}

// Next returns the next part of the text.
func (t *textReader) Next() (Document, error) {
	t.buf = append(t.buf[:0], t.buf[t.from:]...)
	t.from = 0
	have := len(t.buf)
	t.buf = append(t.buf, make([]byte, MaxText+1-have)...)
	n, err := io.ReadFull(t.in, t.buf[have:])
	t.buf = t.buf[:have+n]
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return Document{}, err
	}
	if len(t.buf) == 0 {
		return Document{}, io.EOF
	}
	t.from = len(t.buf)
	if t.from > MaxText {
		t.from = cut(t.buf[:MaxText])
	}
	return Document{Text: t.buf[:t.from]}, nil
}

// cut returns where a text is cut: after its last blank line, else after its last line,
// else before a rune that may not be whole. It leaves at least half.
func cut(text []byte) int {
	for _, end := range []string{"\n\n", "\n"} {
		if at := bytes.LastIndex(text, []byte(end)); at >= len(text)/2 {
			return at + len(end)
		}
	}
	at := len(text)
	for n := 0; n < utf8.UTFMax; n++ {
		at--
		if utf8.RuneStart(text[at]) {
			return at
		}
	}
	return len(text)
}

// jsonLines reads a field of JSON objects, one on a line. Blank lines are skipped.
type jsonLines struct {
	*counter
	in    *bufio.Reader
	field string

	number  int
	line    []byte
	decoder jsontext.Decoder
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
		text, err := j.text()
		if err != nil {
			return Document{}, fmt.Errorf("line %d: %w", j.number, err)
		}
		if text != "" {
			return Document{Text: []byte(text)}, nil
		}
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
			return fmt.Errorf("line %d has more than %d bytes", j.number, maxDocument)
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(j.line) > 0:
			return nil
		default:
			return err
		}
	}
}

// text is the field of the line's object, "" where it is null. encoding/json reads a line three times for it.
func (j *jsonLines) text() (text string, err error) {
	// As encoding/json: of a field that is there twice the last counts, and bytes that are not UTF-8 are replaced.
	j.decoder.Reset(bytes.NewBuffer(j.line), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	last := jsontext.Kind(0) // of the field
	err = j.members(func(name string) error {
		kind := j.decoder.PeekKind()
		if name != j.field {
			return j.decoder.SkipValue()
		}
		last, text = kind, ""
		if kind != '"' {
			return j.decoder.SkipValue()
		}
		token, err := j.decoder.ReadToken()
		if err == nil {
			text = token.String()
		}
		return err
	})
	switch {
	case err != nil:
		return "", err
	case last == 0:
		return "", fmt.Errorf("no field %q: each line must be an object such as {%q: \"...\"}, or name another field", j.field, j.field)
	case last != '"' && last != 'n':
		return "", fmt.Errorf("field %q is no string: it is a JSON %v", j.field, last)
	}
	return text, nil
}

// members calls f with the name of each member of the line's object, and its value next in the decoder.
func (j *jsonLines) members(f func(name string) error) error {
	if kind := j.decoder.PeekKind(); kind != '{' && kind != 0 {
		return fmt.Errorf("it is a JSON %v: each line must be an object such as {%q: \"...\"}", kind, j.field)
	}
	if _, err := j.decoder.ReadToken(); err != nil {
		return err
	}
	for j.decoder.PeekKind() != '}' {
		name, err := j.decoder.ReadToken()
		if err != nil {
			return err
		}
		if err := f(name.String()); err != nil {
			return err
		}
	}
	if _, err := j.decoder.ReadToken(); err != nil {
		return err
	}
	switch _, err := j.decoder.ReadToken(); err {
	case io.EOF:
		return nil
	case nil:
		return errors.New("there is more behind the object")
	default:
		return err
	}
}

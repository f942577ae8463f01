package documents

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

const (
	// MaxText is the longest document of a file of text: some ten pages of a book, which is
	// more than the context of a model, and little enough that a book has parts to hold out.
	MaxText = 64 << 10
	// maxDocument bounds a line of JSON and a row: they are held in memory.
	maxDocument = 64 << 20
	// bufferSize is how much is read at once, and how much of a first line tells whether it is JSON with the field.
	bufferSize = MaxText + 1
)

// Document is one document: its text or, of a file of tokens, its tokens.
type Document struct {
	Text   []byte // UTF-8, until the next call of Next
	Part   bool   // of a file of text, whose documents together are that text
	Tokens []int32
}

// Options say what to read in a file.
type Options struct {
	Field  string // of JSON, or column of Parquet; below others with dots between, as meta.text
	End    int32  // token that ends a document, in files of tokens; -1: none
	Broken int64  // lines of JSON and rows that may be left out because they are broken, those that Tally has among them
	Tally  Tally  // counts what is done; not nil
}

// Reader reads the documents of a file.
type Reader struct {
	reader
	Options
	io.Closer
	of File
}

// reader reads one format.
type reader interface {
	Next() (Document, error)
	// Offset is how far it has come in the file, in bytes.
	Offset() int64
}

// brokenError is an error of one document. The next one can be read.
type brokenError struct{ error }

// Open opens a file. Errors name it.
func (f File) Open(o Options) (r *Reader, err error) {
	file := os.Stdin
	if f.Path != Stdin || f.Size >= 0 {
		if file, err = os.Open(f.Path); err != nil {
			return nil, f.explain(err)
		}
	}
	r = &Reader{Options: o, Closer: file, of: f}
	if r.reader, err = f.reader(&counter{r: file}, o); err != nil {
		file.Close()
		return nil, f.explain(err)
	}
	return r, nil
}

// Each calls use with each document of a file and the place behind it, in bytes of the file.
func (f File) Each(o Options, use func(d Document, offset int64) error) error {
	r, err := f.Open(o)
	if err != nil {
		return err
	}
	defer r.Close()
	for err == nil {
		var d Document
		if d, err = r.Next(); err == nil {
			err = use(d, r.Offset())
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// Next returns the next document that is not empty, or io.EOF.
func (r *Reader) Next() (Document, error) {
	for {
		d, err := r.reader.Next()
		switch {
		case err == nil || err == io.EOF:
			return d, err
		case r.Tally[Broken] >= r.Broken || !errors.As(err, &brokenError{}):
			return d, r.of.explain(err)
		}
		r.Tally[Broken]++
	}
}

func (f File) explain(err error) error { return fmt.Errorf("read %s: %w", f.Path, cause(err)) }

// peek is how a stream begins: n bytes, or all that it has.
func peek(in *bufio.Reader, n int) ([]byte, error) {
	head, err := in.Peek(n)
	if err == io.EOF || err == bufio.ErrBufferFull {
		err = nil
	}
	return head, err
}

// reader finds out what a file is.
func (f File) reader(file *counter, o Options) (reader, error) {
	ending, packed := f.name()
	tokens := ending == ".bin" && !f.found
	in := bufio.NewReaderSize(file, bufferSize)
	head, err := peek(in, binaryProbe)
	kind, remedy := packing(head)
	isPacked := kind != "" && remedy == "" && (!tokens || packed)
	if err == nil && isPacked {
		if in, err = unpack(in, file, kind); err == nil {
			f.Size = -1 // of the text
			head, err = peek(in, binaryProbe)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case tokens:
		if isPacked {
			o.Tally[unpacked]++
		}
		return newTokens(file, in, o.End)
	case isParquet(head) && f.Size >= 0:
		return newColumn(file, f.Size, o)
	}
	if in, err = f.asUTF8(in, head, o.Tally); err == nil {
		head, err = peek(in, binaryProbe)
	}
	if err != nil {
		return nil, err
	}
	what, err := f.refuse(head, isPacked)
	if err == nil && isPacked {
		o.Tally[unpacked]++
	}
	switch {
	case err != nil && what != "" && f.found:
		key := what + " left out"
		if what != binaryFiles { // it may be text that somebody misses
			key += first + f.Path
		}
		o.Tally[key]++
		in.Reset(bytes.NewReader(nil)) // it has no documents
	case err != nil:
		return nil, err
	case len(head) == 0:
		o.Tally["empty files left out"]++
	}
	if lines, err := f.isLines(in, o); lines || err != nil {
		return &jsonLines{counter: file, in: in, o: o}, err
	}
	return &textReader{counter: file, in: in}, nil
}

// counter counts what was read of a file, and keeps its error.
type counter struct {
	r   io.Reader
	n   int64
	err error
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, c.keep(err)
}

func (c *counter) keep(err error) error {
	if err != nil && err != io.EOF {
		c.err = err
	}
	return err
}

// Offset is the number of bytes read.
func (c *counter) Offset() int64 { return c.n }

// textReader cuts a text into documents.
type textReader struct {
	*counter
	in     *bufio.Reader
	last   int   // bytes of the document that was handed out
	before int64 // bytes of text before it
}

// Next returns the next part of the text.
func (t *textReader) Next() (Document, error) {
	_, _ = t.in.Discard(t.last) // it is in the buffer
	t.before += int64(t.last)
	text, err := peek(t.in, bufferSize)
	if err != nil || len(text) == 0 {
		return Document{}, cmp.Or(err, io.EOF)
	}
	if len(text) > MaxText {
		text = text[:cut(text[:MaxText])]
	}
	t.last = len(text)
	return Document{Text: text, Part: true}, checkUTF8(text, t.before)
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

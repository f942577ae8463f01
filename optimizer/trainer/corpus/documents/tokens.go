package documents

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// llm.c's files of tokens begin with a header of 256 numbers of 4 bytes: a magic number
// that says the width of tokens, a version, the number of tokens. nanoGPT's have no
// header, and tokens of 2 bytes.
const (
	llmcHeader  = 256 * 4
	llmcMagic16 = 20240520
	llmcMagic32 = 20240801
)

// maxTokens bounds a document of tokens, as maxDocument does one of text.
const maxTokens = maxDocument / 4

type tokenReader struct {
	*counter
	in    *bufio.Reader
	width int
	end   int32
	left  int64 // tokens; -1: until the file ends
}

func newTokens(counted *counter, in *bufio.Reader, end int32) (*tokenReader, error) {
	t := &tokenReader{counted, in, 2, end, -1}
	if end < 0 {
		return nil, errors.New("it is a file of tokens: pass it to atoll data build with --tokenizer, the one that made it, which has to have an end token")
	}
	head, err := peek(in, llmcHeader)
	if err != nil || len(head) < llmcHeader {
		return t, err
	}
	number := func(i int) uint32 { return binary.LittleEndian.Uint32(head[4*i:]) }
	switch magic := number(0); magic {
	case llmcMagic16, llmcMagic32:
		if magic == llmcMagic32 {
			t.width = 4
		}
		t.left = int64(number(2))
		_, err = in.Discard(llmcHeader)
	}
	return t, err
}

// Next returns the tokens up to the next end token, which is not among them.
func (t *tokenReader) Next() (Document, error) {
	var d Document
	for {
		id, err := t.token()
		switch {
		case err == io.EOF && len(d.Tokens) > 0:
			return d, nil
		case err != nil:
			return Document{}, err
		case id != t.end:
			d.Tokens = append(d.Tokens, id)
		}
		if len(d.Tokens) > 0 && (id == t.end || len(d.Tokens) == maxTokens) {
			return d, nil
		}
	}
}

func (t *tokenReader) token() (int32, error) {
	if t.left == 0 {
		return 0, io.EOF
	}
	b, err := t.in.Peek(t.width)
	switch {
	case err == io.EOF && len(b) == 0 && t.left < 0:
		return 0, io.EOF
	case err == io.EOF:
		return 0, errDamaged
	case err != nil:
		return 0, err
	}
	_, _ = t.in.Discard(t.width)
	t.left-- // below 0 it stays there
	if t.width == 2 {
		return int32(binary.LittleEndian.Uint16(b)), nil
	}
	id := binary.LittleEndian.Uint32(b)
	if id > 1<<30 {
		return 0, fmt.Errorf("%d is no token", id)
	}
	return int32(id), nil
}

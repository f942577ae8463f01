package documents

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"
)

const (
	// binaryProbe is how far into a file a NUL byte makes it binary: the length that git looks at.
	binaryProbe = 8000
	// maxZstdWindow bounds what a packed file may make its reader hold. It is the largest
	// window that the zstd program unpacks unasked.
	maxZstdWindow = 128 << 20
	lfsPointer    = "version https://git-lfs.github.com/spec/" // begins files that Git LFS puts in place of large ones
	lfsMost       = 1024                                       // bytes, more than such a file has
	shortestPack  = 10                                         // bytes up to what tells bzip2
	parquetMagic  = "PAR1"
	utf8Mark      = "\xef\xbb\xbf"
)

var errDamaged = errors.New("it is cut off or damaged: copy or download it again")

// signs are what packed files have near their beginning, and what unpacks those that are not unpacked here.
var signs = []struct {
	at                  int
	bytes, kind, remedy string
}{
	{0, "\x1f\x8b\x08", "gzip", ""}, {0, "\x28\xb5\x2f\xfd", "zstd", ""}, {4, "\x31\x41\x59\x26\x53\x59", "bzip2", ""},
	{1, "\x2a\x4d\x18", "zstd", ""}, // a frame to skip comes first, as pzstd writes it
	{0, "\xfd7zXZ\x00", "xz", "xz -d"}, {0, "PK\x03\x04", "zip", "unzip"}, {257, "ustar", "tar", "tar -xf"},
	{0, "7z\xbc\xaf\x27\x1c", "7z", "7z x"}, {0, "\x04\x22\x4d\x18", "lz4", "lz4 -d"},
}

// packing is how a file is packed that begins so, "" if it is not, and what unpacks it.
func packing(head []byte) (kind, remedy string) {
	for _, s := range signs {
		if len(head) > s.at && bytes.HasPrefix(head[s.at:], []byte(s.bytes)) && (s.kind != "tar" || isBinary(head)) { // text may have its word
			return s.kind, s.remedy
		}
	}
	return "", ""
}

// name is the ending of a file's name, without that of what packs it, and whether it has the latter.
func (f File) name() (ending string, packed bool) {
	name := strings.ToLower(filepath.Base(f.Path))
	ending = filepath.Ext(name)
	if packed = slices.Contains([]string{".gz", ".zst", ".bz2"}, ending); packed {
		ending = filepath.Ext(strings.TrimSuffix(name, ending))
	}
	return ending, packed
}

// unpacker unpacks, and says what is wrong in plain words.
type unpacker struct {
	io.Reader
	file *counter // its errors are not of the packing
}

func unpack(in *bufio.Reader, file *counter, kind string) (*bufio.Reader, error) {
	var r io.Reader = bzip2.NewReader(in)
	var err error
	switch kind {
	case "gzip":
		r, err = gzip.NewReader(in)
	case "zstd":
		r, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
	}
	u := unpacker{r, file}
	return bufio.NewReaderSize(u, bufferSize), u.explain(err)
}

func (u unpacker) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	return n, u.explain(err)
}

func (u unpacker) explain(err error) error {
	switch {
	case err == nil || err == io.EOF:
		return err
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		err = fmt.Errorf("unpacking it takes more than %d MiB of memory at once: unpack it with `zstd -d --long=31`", maxZstdWindow>>20)
	default:
		err = errDamaged
	}
	return cmp.Or(u.file.err, err)
}

// marks are the byte order marks of encodings with units of several bytes. That of UTF-16 begins one of UTF-32.
var marks = []struct {
	bytes string
	unit  int64
	of    encoding.Encoding
}{
	{"\xff\xfe\x00\x00", 4, utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)}, {"\x00\x00\xfe\xff", 4, utf32.UTF32(utf32.BigEndian, utf32.UseBOM)},
	{"\xff\xfe", 2, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)}, {"\xfe\xff", 2, unicode.UTF16(unicode.BigEndian, unicode.UseBOM)},
}

// asUTF8 returns what follows the mark of an encoding, as UTF-8.
func (f File) asUTF8(in *bufio.Reader, head []byte, t Tally) (*bufio.Reader, error) {
	if bytes.HasPrefix(head, []byte(utf8Mark)) {
		_, err := in.Discard(len(utf8Mark))
		return in, err
	}
	for _, m := range marks {
		switch {
		case !bytes.HasPrefix(head, []byte(m.bytes)):
			continue
		case f.Size > 0 && f.Size%m.unit > 0:
			return nil, errDamaged
		}
		t["files converted to UTF-8"]++
		return bufio.NewReaderSize(&converted{Reader: m.of.NewDecoder().Reader(in), tally: t}, bufferSize), nil
	}
	return in, nil
}

// converted counts the characters that stand for what could not be converted, such as half a pair of UTF-16.
type converted struct {
	io.Reader
	tally Tally
	tail  []byte // bytes that may begin one
}

func (c *converted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.tail = append(c.tail, b[:n]...)
	if found := bytes.Count(c.tail, []byte("\ufffd")); found > 0 {
		c.tally["characters that could not be converted"] += int64(found)
	}
	c.tail = append(c.tail[:0], c.tail[max(0, len(c.tail)-(len("\ufffd")-1)):]...)
	return n, err
}

// checkUTF8 refuses text that is not UTF-8. It has before bytes before it.
func checkUTF8(text []byte, before int64) error {
	if utf8.Valid(text) {
		return nil
	}
	_, at, _ := transform.Bytes(encoding.UTF8Validator, text)
	if !utf8.FullRune(text[at:]) {
		return errDamaged // a character is cut in two
	}
	return fmt.Errorf("it is not UTF-8 from its byte %d on: if it is of another encoding convert it, from Latin-1 with `iconv -f LATIN1 -t UTF-8`, otherwise copy or download it again", before+int64(at))
}

// isBinary holds for what is no text: it has zero bytes or, in whatever encoding, control characters that text has not.
func isBinary(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 || bytes.HasPrefix(head, []byte("%PDF-")) {
		return true
	}
	return !beginsUTF8(head) && bytes.ContainsFunc(head, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\v\f\r\b\x1a\x1b", r) })
}

// beginsUTF8 says that a text that begins so may be UTF-8: the last rune may go on.
func beginsUTF8(head []byte) bool {
	for cut := range min(utf8.UTFMax, len(head)+1) {
		if utf8.Valid(head[:len(head)-cut]) {
			return true
		}
	}
	return false
}

func isParquet(head []byte) bool {
	return bytes.HasPrefix(head, []byte(parquetMagic)) && (isBinary(head) || len(head) == len(parquetMagic))
}

// refuse says why text that begins so is not read, nil if it is; and what it is where it is left out if it was found in a folder.
func (f File) refuse(head []byte, unpacked bool) (what string, err error) {
	ending, packed := f.name()
	packed = packed && !unpacked
	kind, remedy := packing(head)
	switch {
	case bytes.HasPrefix(head, []byte(lfsPointer)) && len(head) < lfsMost:
		return "", errors.New("it is a pointer of Git LFS in place of the file: run `git lfs pull` where it was cloned")
	case isParquet(head):
		return "", errors.New("it is Parquet, but packed or through a pipe: unpack it and pass the file")
	case kind != "":
		return "packed files", fmt.Errorf("it is packed with %s, which is not read here: unpack it, as with `%s`", kind, cmp.Or(remedy, kind+" -d"))
	case packed && (len(head) < shortestPack || isBinary(head)), ending == ".parquet":
		return "", errDamaged
	case isBinary(head):
		return binaryFiles, errors.New("it is binary, not text: pass text, JSON lines or Parquet")
	case f.found && !beginsUTF8(head):
		return "files that are not UTF-8", checkUTF8(head, 0)
	}
	return "", nil
}

package documents

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

const (
	maxFooter = 64 << 20 // bytes about columns and groups of rows: a hundred thousand of these have less
	maxPage   = 1 << 30  // bytes unpacked, held in memory: of about a MiB, but writers look only every thousand rows
	maxValues = 1 << 26  // of a page: repeated ones take almost no room in it
)

// errParquet is all that is said of a file where the library fails, or panics: it does at some damaged files.
var errParquet = errors.New("its Parquet is damaged, or of a form that is not read here: copy or download it again, or write its text as JSON lines")

// column reads a column of strings. Those of a row are one document, one on a line.
type column struct {
	file   *counter
	o      Options
	groups []parquet.RowGroup // those that are left
	meta   []format.RowGroup  // of those
	index  int
	values parquet.ValueReader // of a group
	buf    [64]parquet.Value
	ready  []parquet.Value
	text   []byte

	size, rows, done int64
}

func newColumn(file *counter, size int64, o Options) (c *column, err error) {
	c = &column{file: file, size: size, o: o}
	defer c.fence(&err)
	if err := checkFooter(file, size); err != nil {
		return nil, err
	}
	f, err := parquet.OpenFile(file, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, errParquet
	}
	c.groups, c.rows, c.meta = f.RowGroups(), f.NumRows(), f.Metadata().RowGroups
	c.index, err = columnOf(f.Schema(), o.Field)
	return c, err
}

// fence ends the library's panics. What the file itself failed with comes first.
func (c *column) fence(err *error) {
	if recover() != nil || *err == errParquet {
		*err = cmp.Or(c.file.err, errParquet)
	}
}

// ReadAt implements io.ReaderAt.
func (c *counter) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.r.(io.ReaderAt).ReadAt(b, at)
	return n, c.keep(err)
}

// columnOf returns the index of a column of strings. Its name is its path, with or without the levels that a list has.
func columnOf(s *parquet.Schema, name string) (int, error) {
	index, names := -1, []string{}
	for _, path := range s.Columns() {
		leaf, _ := s.Lookup(path...)
		if leaf.Node == nil || leaf.Node.Type().Kind() != parquet.ByteArray {
			continue
		}
		long := strings.Join(path, ".")
		short := strings.NewReplacer(".list.element", "", ".list.item", "", ".bag.array_element", "").Replace(long)
		if long == name || short == name && index < 0 {
			index = leaf.ColumnIndex
		}
		names = append(names, short)
	}
	if index < 0 {
		return 0, fmt.Errorf("no text in column %q: %s", name, texts(names))
	}
	return index, nil
}

// Offset is the share of the rows that were read, of the size of the file.
func (c *column) Offset() int64 {
	return int64(float64(c.size) * float64(c.done) / float64(max(c.rows, 1)))
}

// Next returns the next row's text. Rows without one are skipped.
func (c *column) Next() (Document, error) {
	for {
		if err := c.row(); err != nil {
			return Document{}, err
		}
		var err error
		if !utf8.Valid(c.text) {
			err = fmt.Errorf("its text is not UTF-8: %w", errDamaged)
		}
		if len(c.text) > maxDocument {
			err = fmt.Errorf("it has %d bytes, of at most %d", len(c.text), maxDocument)
		}
		if err != nil {
			return Document{}, brokenError{fmt.Errorf("row %d: %w", c.done, err)}
		}
		if len(c.text) > 0 {
			return Document{Text: c.text}, nil
		}
		c.o.Tally[noText]++
	}
}

// row reads the texts of the next row.
func (c *column) row() (err error) {
	defer c.fence(&err)
	c.text = c.text[:0]
	there := false
	for first := true; ; first = false {
		for len(c.ready) == 0 && err == nil {
			err = c.fill()
		}
		switch {
		case !first && (err == io.EOF || err == nil && c.ready[0].RepetitionLevel() == 0):
			return nil
		case err == io.EOF && c.done != c.rows:
			return errParquet
		case err != nil:
			return err
		case first:
			c.done++
		}
		if v := c.ready[0]; !v.IsNull() {
			if there {
				c.text = append(c.text, '\n')
			}
			c.text, there = append(c.text, v.ByteArray()...), true
		}
		c.ready = c.ready[1:]
	}
}

// fill reads values of the group that is open, or opens the next one.
func (c *column) fill() error {
	if c.values == nil {
		if len(c.groups) == 0 {
			return io.EOF
		}
		if err := checkPages(c.file, c.meta[0].Columns[c.index].MetaData); err != nil {
			return err
		}
		c.values = parquet.NewColumnChunkValueReader(c.groups[0].ColumnChunks()[c.index])
		c.groups, c.meta = c.groups[1:], c.meta[1:]
	}
	n, err := c.values.ReadValues(c.buf[:])
	c.ready = c.buf[:n]
	if err == io.EOF {
		c.values, err = nil, nil
	}
	if err != nil {
		return errParquet
	}
	return nil
}

// bounded reads lists that are no longer than what is left: the library makes room for what a damaged file says.
type bounded struct {
	thrift.BytesReader
	size int
}

func (b bounded) ReadList() (thrift.List, error) {
	l, err := b.BytesReader.ReadList()
	if int(l.Size) > b.size-b.BytesRead() {
		err = errParquet
	}
	return l, err
}

// checkFooter checks what describes a file, and that it is of this file alone.
func checkFooter(file io.ReaderAt, size int64) error {
	end := make([]byte, 8)
	if _, err := file.ReadAt(end, max(size, 8)-8); err != nil || size < 12 || string(end[4:]) != parquetMagic {
		return errDamaged
	}
	n := int64(binary.LittleEndian.Uint32(end))
	if n > min(size-12, maxFooter) {
		return errParquet
	}
	b, m := make([]byte, n), format.FileMetaData{}
	_, err := file.ReadAt(b, size-8-n)
	if err != nil || thrift.NewDecoder(bounded{new(thrift.CompactProtocol).NewReaderFromBytes(b), len(b)}).Decode(&m) != nil {
		return errParquet
	}
	last := int64(0) // the end of what the footer speaks of
	for _, g := range m.RowGroups {
		for _, c := range g.Columns {
			last = max(last, cmp.Or(c.MetaData.DictionaryPageOffset, c.MetaData.DataPageOffset)+c.MetaData.TotalCompressedSize,
				c.ColumnIndexOffset+int64(c.ColumnIndexLength), c.OffsetIndexOffset+int64(c.OffsetIndexLength))
		}
	}
	if at := size - 8 - n - last; at >= 4 && last > 0 {
		if _, err := file.ReadAt(end[:4], at); err != nil || string(end[:4]) == parquetMagic {
			return errors.New("it is several files of Parquet, one behind the other: pass each by itself")
		}
	}
	return nil
}

// checkPages bounds the pages of a column in a group of rows.
func checkPages(file io.ReaderAt, m format.ColumnMetaData) error {
	from := cmp.Or(m.DictionaryPageOffset, m.DataPageOffset)
	in := bufio.NewReader(io.NewSectionReader(file, max(from, 0), m.TotalCompressedSize))
	d := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(in))
	for from >= 0 {
		h := format.PageHeader{}
		err := d.Decode(&h)
		if err == io.EOF {
			return nil
		}
		values := max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues)
		if err != nil || max(h.UncompressedPageSize, h.CompressedPageSize) > maxPage || values > maxValues {
			break
		}
		if _, err := in.Discard(int(h.CompressedPageSize)); err != nil {
			break
		}
	}
	return errParquet
}

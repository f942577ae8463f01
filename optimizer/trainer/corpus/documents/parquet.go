package documents

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// column reads a column of strings.
type column struct {
	groups []parquet.RowGroup // those that are left
	index  int
	pages  parquet.Pages
	values parquet.ValueReader
	buf    [64]parquet.Value
	ready  []parquet.Value

	size, rows, done int64
}

func newColumn(file *os.File, size int64, name string) (*column, error) {
	f, err := parquet.OpenFile(file, size)
	if err != nil {
		return nil, err
	}
	leaf, ok := f.Schema().Lookup(name)
	if !ok {
		return nil, fmt.Errorf("no column %q: it has %s", name, columnNames(f.Schema()))
	}
	if k := leaf.Node.Type().Kind(); k != parquet.ByteArray || leaf.MaxRepetitionLevel > 0 {
		return nil, fmt.Errorf("column %q is not of strings, one a row", name)
	}
	return &column{groups: f.RowGroups(), index: leaf.ColumnIndex, size: size, rows: f.NumRows()}, nil
}

func columnNames(s *parquet.Schema) string {
	var names []string
	for _, path := range s.Columns() {
		names = append(names, strings.Join(path, "."))
	}
	return strings.Join(names, ", ")
}

// Offset is the share of the rows that were read, of the size of the file.
func (c *column) Offset() int64 {
	if c.rows == 0 {
		return c.size
	}
	return int64(float64(c.size) * float64(c.done) / float64(c.rows))
}

// Next returns the next row's text. Rows without one are skipped.
func (c *column) Next() (Document, error) {
	for {
		for len(c.ready) == 0 {
			if err := c.fill(); err != nil {
				return Document{}, err
			}
		}
		v := c.ready[0]
		c.ready = c.ready[1:]
		c.done++
		text := v.ByteArray()
		if len(text) > maxDocument {
			return Document{}, fmt.Errorf("row %d has %d bytes, of at most %d", c.done, len(text), maxDocument)
		}
		if len(text) > 0 {
			return Document{Text: text}, nil
		}
	}
}

// fill reads values of the page that is open, or opens the next one.
func (c *column) fill() error {
	if c.values != nil {
		n, err := c.values.ReadValues(c.buf[:])
		c.ready = c.buf[:n]
		if errors.Is(err, io.EOF) {
			c.values, err = nil, nil
		}
		return err
	}
	if c.pages != nil {
		page, err := c.pages.ReadPage()
		switch {
		case err == nil:
			c.values = page.Values()
			return nil
		case !errors.Is(err, io.EOF):
			return err
		}
		err = c.pages.Close()
		c.pages = nil
		return err
	}
	if len(c.groups) == 0 {
		return io.EOF
	}
	c.pages = c.groups[0].ColumnChunks()[c.index].Pages()
	c.groups = c.groups[1:]
	return nil
}

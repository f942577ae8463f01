package rounds

// Row is what tests see of a row of a table.
type Row struct {
	Word string
	Says bool // it closes, or is awaited
}

// ClosingRows are those of the table closing.
func ClosingRows() (rows []Row) {
	for _, r := range closing {
		rows = append(rows, Row{r.word, r.closes})
	}
	return rows
}

// AwaitingRows are those of the table awaiting.
func AwaitingRows() (rows []Row) {
	for _, r := range awaiting {
		rows = append(rows, Row{r.word, r.waits})
	}
	return rows
}

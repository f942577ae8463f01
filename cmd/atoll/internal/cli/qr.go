package cli

import (
	"fmt"
	"strings"

	"rsc.io/qr"
)

// quietZone is how many light modules a reader wants around a QR code.
const quietZone = 4

// QR draws a text as a QR code, dark on light whatever the colours of the terminal, two modules in the height of a character.
func QR(text string) (string, error) {
	code, err := qr.Encode(text, qr.L) // the least redundancy: links are long, and screens have no scratches
	if err != nil {
		return "", fmt.Errorf("draw %d characters as a QR code: %w", len(text), err)
	}
	dark := func(x, y int) bool { return code.Black(x-quietZone, y-quietZone) }
	halves := map[[2]bool]string{{false, false}: " ", {true, false}: "▀", {false, true}: "▄", {true, true}: "█"}
	var b strings.Builder
	for y := 0; y < code.Size+2*quietZone; y += 2 {
		b.WriteString("\x1b[30;107m")
		for x := range code.Size + 2*quietZone {
			b.WriteString(halves[[2]bool{dark(x, y), dark(x, y+1)}])
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String(), nil
}

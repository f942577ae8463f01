package cli

import (
	"image"
	"image/color"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
)

// A reader finds the text in what the terminal shows.
func TestQRIsRead(t *testing.T) {
	for _, text := range []string{"atoll:", "atoll:" + strings.Repeat("aB3-_", 40), "atoll:" + strings.Repeat("zY9", 160)} {
		drawn, err := QR(text)
		if err != nil {
			t.Fatal(err)
		}
		bitmap, err := gozxing.NewBinaryBitmapFromImage(picture(drawn))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := qrcode.NewQRCodeReader().Decode(bitmap, nil); err != nil || got.GetText() != text {
			t.Errorf("%d characters: read %v, %v", len(text), got, err)
		}
	}
	if _, err := QR(strings.Repeat("x", 4000)); err == nil {
		t.Error("draws more than a code holds")
	}
}

// picture is what a terminal shows of half blocks, dark on light, at four pixels a module.
func picture(drawn string) image.Image {
	const pixels = 4
	lines := strings.Split(strings.TrimSuffix(ansi.Strip(drawn), "\n"), "\n")
	p := image.NewGray(image.Rect(0, 0, len([]rune(lines[0]))*pixels, 2*len(lines)*pixels))
	for i := range p.Pix {
		p.Pix[i] = 255
	}
	for y, line := range lines {
		for x, c := range []rune(line) {
			for i := range 2 * pixels * pixels {
				half := i / (pixels * pixels) // 0 is the upper one
				if c == '█' || c == []rune("▀▄")[half] {
					p.SetGray(x*pixels+i%pixels, (2*y+half)*pixels+i/pixels%pixels, color.Gray{})
				}
			}
		}
	}
	return p
}

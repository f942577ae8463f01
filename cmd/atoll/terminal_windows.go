package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// takesEscapes says that a terminal moves its cursor by escape sequences. Consoles of Windows 10
// and later do, once they are asked to.
func takesEscapes(f *os.File) bool {
	console, mode := windows.Handle(f.Fd()), uint32(0)
	if windows.GetConsoleMode(console, &mode) != nil {
		return true // a terminal of another kind
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

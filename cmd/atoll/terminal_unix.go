//go:build unix

package main

import "os"

// takesEscapes says that a terminal moves its cursor by escape sequences.
func takesEscapes(*os.File) bool { return true }

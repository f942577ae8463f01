package status

import (
	"runtime"
	"strings"
)

// plainWord are the characters that no shell minds.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@,"

// ShellWord makes a word of a value for the shells of this system, for commands that people copy.
func ShellWord(s string) string { return shellWordOn(runtime.GOOS, s) }

func shellWordOn(system, s string) string {
	plain := plainWord
	if system == "windows" {
		plain += `\`
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return s
	}
	if system == "windows" {
		return `"` + s + `"` // names of files have no quotes there
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

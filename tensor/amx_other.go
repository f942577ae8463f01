//go:build amd64 && !purego && !linux

package tensor

func permitTiles() string { return "AMX is used on Linux alone" }

//go:build !purego

package tensor

var tileOf = map[string]*tile{"neon": &tileNEON}

//go:build !purego

package tensor

var tileOf = map[string]*tile{"avx512": &tileAVX512, "avx2": &tileAVX2}

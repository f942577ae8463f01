//go:build !(amd64 || arm64) || purego

package tensor

import "testing"

func benchmarkTile(b *testing.B, _ string) { b.Skip("no tile kernel in this build") }

//go:build !(amd64 || arm64) || purego

package tensor

// fastKernels returns nothing: this build has only the plain kernel.
func fastKernels() []kernel { return nil }

//go:build !(amd64 || arm64) || purego

package tensor

// fastKernels returns nothing: this build has only the plain kernel.
func fastKernels() []kernel { return nil }

func whyPlainBF16() string { return "this build has no kernel for it" }

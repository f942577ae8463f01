package tensor

// Kernel names the kernel in use: "avx512", "avx2" or "go".
func Kernel() string { return "go" }

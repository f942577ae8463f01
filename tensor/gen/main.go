// Gen writes the amd64 assembly of package tensor and its Go declarations. Run it
// with go generate in the folder of that package.
//
// Each kernel is described once and emitted for AVX-512 and for AVX2 with FMA; isa
// holds what differs.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	dir := flag.String("dir", ".", "folder to write to")
	flag.Parse()
	if err := generate(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate writes one assembly file and one file of declarations for each group
// of kernels.
func generate(dir string) error {
	groups := []struct {
		name string
		emit func(*build.Context)
	}{
		{"gemm", emitGemm},
		{"pack", emitPack},
		{"vector", emitVector},
	}
	for _, g := range groups {
		if err := write(filepath.Join(dir, g.name), g.emit); err != nil {
			return fmt.Errorf("write %s: %w", g.name, err)
		}
	}
	return nil
}

// write emits one group into base_amd64.s and base_amd64.go.
func write(base string, emit func(*build.Context)) error {
	c := build.NewContext()
	c.ConstraintExpr("!purego")
	emit(c)
	file, err := c.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	cfg := printer.Config{Name: "atoll/tensor/gen", Pkg: "tensor"}
	for suffix, p := range map[string]printer.Printer{
		"_amd64.s":  printer.NewGoAsm(cfg),
		"_amd64.go": printer.NewStubs(cfg),
	} {
		text, err := p.Print(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(base+suffix, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

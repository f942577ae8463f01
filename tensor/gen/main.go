package main

import (
	"errors"
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
		name  string
		amd64 func(*build.Context)
		arm64 func(*neon)
	}{
		{"gemm", emitGemm, emitNEONGemm},
		{"pack", emitPack, emitNEONPack},
		{"vector", emitVector, emitNEONVector},
		{"peak", emitPeak, emitNEONPeak},
		{"wide", emitWide, emitNEONWide},
		{"quant", emitQuant, nil},
		{"topk", emitTopK, nil},
		{"huff", emitHuff, nil},
		{"amx", emitAMX, nil},
	}
	for _, g := range groups {
		base := filepath.Join(dir, g.name)
		err := write(base, g.amd64)
		if g.arm64 != nil {
			err = errors.Join(err, writeNEON(base, g.arm64))
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", g.name, err)
		}
	}
	return nil
}

// config heads every file.
var config = printer.Config{Name: "atoll/tensor/gen", Pkg: "tensor"}

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
	encode(file)
	for suffix, p := range map[string]printer.Printer{
		"_amd64.s":  printer.NewGoAsm(config),
		"_amd64.go": printer.NewStubs(config),
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

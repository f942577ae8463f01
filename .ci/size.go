// Size counts for .ci/size what only Go's own parser and types can: numbers in the files that standard input names, one a
// line, and the settings of a run. It prints JSON.
//
//	go run .ci/size.go <FILES
package main

import (
	"bufio"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"reflect"
	"slices"

	"atoll/node/genesis"
)

// plain are numbers that say nothing of their own.
var plain = []string{"0", "1", "2", "0.0", "1.0", "2.0"}

type counts struct {
	Constants int            `json:"constants"` // names that a const declaration gives a number of its own
	Literals  int            `json:"literals"`  // numbers written out elsewhere
	Settings  map[string]int `json:"settings"`  // fields of a genesis, by the part that they are in
}

func main() {
	log.SetFlags(0)
	var c counts
	for files := bufio.NewScanner(os.Stdin); files.Scan(); {
		file, err := parser.ParseFile(token.NewFileSet(), files.Text(), nil, parser.SkipObjectResolution)
		if err != nil {
			log.Fatal(err)
		}
		c.numbers(file)
	}
	c.Settings = map[string]int{}
	settings(reflect.TypeFor[genesis.Genesis](), "Genesis", c.Settings)
	if err := json.NewEncoder(os.Stdout).Encode(c); err != nil {
		log.Fatal(err)
	}
}

func (c *counts) numbers(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, spec := range d.Specs {
				if slices.ContainsFunc(spec.(*ast.ValueSpec).Values, hasNumber) {
					c.Constants++
				}
			}
			return false
		}
		if isNumber(n) {
			c.Literals++
		}
		return true
	})
}

func hasNumber(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		found = found || isNumber(n)
		return !found
	})
	return found
}

func isNumber(n ast.Node) bool {
	l, ok := n.(*ast.BasicLit)
	return ok && (l.Kind == token.INT || l.Kind == token.FLOAT) && !slices.Contains(plain, l.Value)
}

// settings counts what JSON has a value for. A list is one setting.
func settings(t reflect.Type, part string, count map[string]int) {
	for _, f := range reflect.VisibleFields(t) {
		if f.Tag.Get("json") == "-" || !f.IsExported() {
			continue
		}
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Struct {
			settings(kind, f.Name, count)
			continue
		}
		count[part]++
	}
}

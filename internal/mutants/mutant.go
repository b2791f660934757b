package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is one small change of a source file: the bytes from From to To are replaced.
type mutant struct {
	File     string
	Line     int
	From, To int
	New      string
	// Old is what stood there, Source the line that it begins in.
	Old, Source string

	// ID is its number in a build that holds many, and Kind how its switch is written there: around the bytes from SwitchFrom to SwitchTo, of which the part in
	// front of Left and that behind Right are the operands of an operator.
	ID                   int
	Kind                 kind
	SwitchFrom, SwitchTo int
	Left, Right          int
}

// kind is how a switch is written around a mutant.
type kind int

const (
	kindCondition kind = iota
	// kindGuard is a condition in whose place another one stands.
	kindGuard
	kindOperator
	kindLiteral
	kindPick
	kindBreak
	kindStatement
)

func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.change()) }

// change is what is changed to what.
func (m mutant) change() string {
	short := func(s string) string {
		s = strings.Join(strings.Fields(s), " ")
		if len(s) > 70 {
			return s[:70] + "…"
		}
		return s
	}
	return short(m.Old) + " → " + cmp.Or(short(m.New), "nothing")
}

// apply returns the source with the change made.
func (m mutant) apply(src []byte) []byte {
	return slices.Concat(src[:m.From], []byte(m.New), src[m.To:])
}

// operators are exchanged for each other.
var operators = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LAND: token.LOR, token.LOR: token.LAND, token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
}

// constants and functions are exchanged for each other.
var (
	constants = map[string]string{"true": "false", "false": "true"}
	functions = map[string]string{"min": "max", "max": "min"}
)

// mutantsOf lists the mutants of a file.
func mutantsOf(file string, src []byte) ([]mutant, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []mutant
	lines := strings.Split(string(src), "\n")
	at := func(pos token.Pos) int { return fset.Position(pos).Offset }
	add := func(k kind, from, to token.Pos, text string, around ast.Node) {
		m := mutant{File: file, Line: fset.Position(from).Line, From: at(from), To: at(to), New: text, Kind: k, SwitchFrom: at(around.Pos()), SwitchTo: at(around.End())}
		m.Old, m.Source = string(src[m.From:m.To]), strings.TrimSpace(lines[m.Line-1])
		m.Left, m.Right = m.From, m.To
		out = append(out, m)
	}
	text := func(n ast.Node) string {
		return string(src[fset.Position(n.Pos()).Offset:fset.Position(n.End()).Offset])
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.IMPORT && n.Tok != token.TYPE // neither paths nor tags
		case *ast.BinaryExpr:
			if other, ok := operators[n.Op]; ok {
				add(kindOperator, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String(), n)
			}
		case *ast.IfStmt:
			add(kindCondition, n.Cond.Pos(), n.Cond.End(), "!("+text(n.Cond)+")", n.Cond)
		case *ast.BasicLit:
			if i, err := strconv.Atoi(n.Value); n.Kind == token.INT && err == nil {
				add(kindLiteral, n.Pos(), n.End(), strconv.Itoa(i+1), n)
			}
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok && functions[name.Name] != "" {
				add(kindPick, name.Pos(), name.End(), functions[name.Name], n)
			}
		case *ast.Ident:
			if other, ok := constants[n.Name]; ok {
				add(kindCondition, n.Pos(), n.End(), other, n)
			}
		case *ast.BranchStmt:
			if n.Label == nil && n.Tok == token.CONTINUE {
				add(kindBreak, n.Pos(), n.End(), "break", n)
			}
		case *ast.BlockStmt:
			for _, s := range n.List {
				if removable(s) {
					add(kindStatement, s.Pos(), s.End(), "", s)
				}
			}
		}
		return true
	})
	return out, nil
}

// removable reports whether a statement can be left out and the rest mostly still compiles.
func removable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt:
		return true
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	}
	return false
}

// collect lists the mutants of the Go files of some folders, tests and generated files left out.
func collect(folders []string) ([]mutant, error) {
	var out []mutant
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("mutants: no Go files in %q", folder)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			if strings.Contains(string(src), "\n// Code generated ") {
				continue
			}
			more, err := mutantsOf(file, src)
			if err != nil {
				return nil, fmt.Errorf("mutants: %s: %w", file, err)
			}
			out = append(out, more...)
		}
	}
	return out, nil
}

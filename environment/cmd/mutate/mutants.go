package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A mutant is a file with one place changed.
type mutant struct {
	of         goPackage // that the file is part of
	file       string
	source     []byte
	from, to   int // of the bytes that are replaced
	with, kind string
	line       int
}

// apply returns the changed file.
func (m mutant) apply() []byte {
	return slices.Concat(m.source[:m.from], []byte(m.with), m.source[m.to:])
}

// String names the place and the change.
func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.name(), m.line, m.change()) }

// key names the file, the change and the text of the line, which stays when other lines are added.
func (m mutant) key() string {
	lines := strings.Split(string(m.source), "\n")
	return fmt.Sprintf("%s: %s in %s", m.name(), m.change(), strings.TrimSpace(lines[m.line-1]))
}

// name is the file, seen from the working folder.
func (m mutant) name() string {
	folder, err := os.Getwd()
	if err != nil {
		return m.file
	}
	if relative, err := filepath.Rel(folder, m.file); err == nil {
		return relative
	}
	return m.file
}

func (m mutant) change() string {
	short := func(text string) string {
		if text = strings.Join(strings.Fields(text), " "); len(text) > 80 {
			return text[:77] + "..."
		}
		return text
	}
	return fmt.Sprintf("%s: %s -> %s", m.kind, short(string(m.source[m.from:m.to])), short(m.with))
}

// mutantsOf lists the mutants of a file, in the order of their places.
func mutantsOf(file string, source []byte) ([]mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	f := finder{file: set.File(tree.Pos()), source: source}
	for _, d := range tree.Decls {
		ast.Inspect(d, f.visit)
	}
	return f.found, nil
}

// A finder collects the mutants of a file.
type finder struct {
	file   *token.File
	source []byte
	found  []mutant
}

// operators are what binary operators become.
var operators = map[token.Token]string{
	token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*", token.REM: "*",
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&",
	token.AND: "|", token.OR: "&", token.XOR: "&", token.SHL: ">>", token.SHR: "<<",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=", token.MUL_ASSIGN: "/=", token.QUO_ASSIGN: "*=",
}

// functions are what the operations of graphs, and others, become; "" stands for their first argument.
var functions = map[string][]string{
	"Add": {"Sub", ""}, "Sub": {"Add", ""}, "Mul": {"Div", ""}, "Div": {"Mul", ""},
	"AddScalar": {""}, "MulScalar": {"AddScalar", ""}, "Neg": {""}, "OneMinus": {""}, "Reciprocal": {""},
	"Exp": {""}, "Log": {""}, "Sqrt": {""}, "StopGradient": {""}, "Identity": nil,
	"Max": {"Min"}, "Min": {"Max"}, "MaxScalar": {"MinScalar", ""}, "MinScalar": {"MaxScalar", ""},
	"SumRows": {"SumColumns"}, "SumColumns": {"SumRows"}, "ReduceSum": {"ReduceMean"}, "ReduceMean": {"ReduceSum"},
	"Abs": {""}, "LessThan": {"GreaterThan"}, "GreaterThan": {"LessThan"}, "ProductTransposed": {"Product"}, "Clone": {""},
}

// commutative are functions for which an exchange of arguments changes nothing.
var commutative = []string{"Add", "Mul", "Max", "Min", "max", "min", "Equal", "DeepEqual"}

// failure is what is returned as an error.
var failure = regexp.MustCompile(`^(err|fmt\.Errorf\(|errors\.)`)

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.file.Offset(n.Pos()):f.file.Offset(n.End())])
}

// replace adds a mutant in which the bytes from from to to have become with.
func (f *finder) replace(kind string, from, to token.Pos, with string) {
	m := mutant{file: f.file.Name(), source: f.source, from: f.file.Offset(from), to: f.file.Offset(to), with: with, kind: kind, line: f.file.Line(from)}
	if string(f.source[m.from:m.to]) != with {
		f.found = append(f.found, m)
	}
}

// visit adds the mutants of a node, and says whether there may be more inside of it.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.FuncType, *ast.StructType, *ast.InterfaceType, *ast.ArrayType:
		return false
	case *ast.ReturnStmt:
		if last := len(n.Results) - 1; last > 0 && failure.MatchString(f.text(n.Results[last])) {
			return false // what is returned with an error does not matter
		}
	case *ast.CallExpr:
		return f.call(n)
	case *ast.BinaryExpr:
		if other, known := operators[n.Op]; known && !isText(n.X) && !isText(n.Y) {
			f.replace("operator", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other)
		}
		if (n.Op == token.ADD || n.Op == token.SUB) && !isText(n.X) && !isText(n.Y) {
			f.replace("dropped term", n.Pos(), n.End(), f.text(n.X))
		}
	case *ast.UnaryExpr:
		return f.unary(n)
	case *ast.BasicLit:
		f.literal(n)
	case *ast.IfStmt:
		switch n.Cond.(type) {
		case *ast.BinaryExpr, *ast.UnaryExpr:
		default:
			f.replace("condition", n.Cond.Pos(), n.Cond.End(), "!("+f.text(n.Cond)+")")
		}
	case *ast.AssignStmt:
		if other, known := operators[n.Tok]; known && !isText(n.Rhs[0]) {
			f.replace("operator", n.TokPos, n.TokPos+token.Pos(len(n.Tok.String())), other)
		}
		if n.Tok != token.DEFINE && len(n.Lhs) == 1 && f.text(n.Lhs[0]) != "_" {
			f.replace("dropped statement", n.Pos(), n.End(), "_ = "+f.text(n.Rhs[0]))
		}
	case *ast.IncDecStmt:
		other := map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok]
		f.replace("operator", n.TokPos, n.TokPos+2, other)
	case *ast.BranchStmt:
		if n.Label == nil && n.Tok == token.CONTINUE {
			f.replace("branch", n.Pos(), n.End(), "break")
		} else if n.Label == nil && n.Tok == token.BREAK {
			f.replace("branch", n.Pos(), n.End(), "continue")
		}
	}
	return true
}

// unary drops a minus or a not; an axis counted from the end becomes another one.
func (f *finder) unary(n *ast.UnaryExpr) bool {
	literal, is := n.X.(*ast.BasicLit)
	switch {
	case n.Op == token.SUB && is && literal.Kind == token.INT:
		other := map[string]string{"1": "-2", "2": "-1", "3": "-2"}[literal.Value]
		if other == "" {
			other = literal.Value
		}
		f.replace("axis", n.Pos(), n.End(), other)
		return false
	case n.Op == token.SUB || n.Op == token.NOT:
		f.replace("sign", n.Pos(), n.End(), f.text(n.X))
	}
	return true
}

// literal changes a number by one, or where it is none that counts to its double.
func (f *finder) literal(n *ast.BasicLit) {
	switch n.Kind {
	case token.INT:
		if v, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			f.replace("constant", n.Pos(), n.End(), fmt.Sprint(v+1))
		}
	case token.FLOAT:
		if v, err := strconv.ParseFloat(n.Value, 64); err == nil && v == 0 {
			f.replace("constant", n.Pos(), n.End(), "1.0")
		} else if err == nil {
			f.replace("constant", n.Pos(), n.End(), strconv.FormatFloat(2*v, 'e', -1, 64))
		}
	}
}

// call changes the operation, and exchanges its first two arguments. What is in a message does not matter.
func (f *finder) call(n *ast.CallExpr) bool {
	name, whole := "", f.text(n.Fun)
	switch fun := n.Fun.(type) {
	case *ast.SelectorExpr:
		name = fun.Sel.Name
	case *ast.Ident:
		name = fun.Name
	}
	switch {
	case whole == "fmt.Errorf" || whole == "errors.New" || whole == "panic" || whole == "fail":
		return false
	case name == "make" && len(n.Args) == 3: // the capacity changes nothing
		ast.Inspect(n.Args[1], f.visit)
		return false
	}
	for _, other := range functions[name] {
		switch {
		case len(n.Args) == 0:
		case other == "":
			f.replace("dropped operation", n.Pos(), n.End(), f.text(n.Args[0]))
		default:
			f.replace("operation", n.Fun.End()-token.Pos(len(name)), n.Fun.End(), other)
		}
	}
	if len(n.Args) >= 2 && !n.Ellipsis.IsValid() && !slices.Contains(commutative, name) {
		for i := range len(n.Args) - 1 {
			a, b := n.Args[i], n.Args[i+1]
			if plain(a) && plain(b) {
				f.replace("exchanged arguments", a.Pos(), b.End(), f.text(b)+", "+f.text(a))
			}
		}
	}
	return true
}

// plain says whether an argument may have the type of its neighbour: it is a name, a number, or made by a call.
func plain(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name != "s" && e.Name != "nil" && e.Name != "ctx" && e.Name != "t"
	case *ast.BasicLit:
		return e.Kind != token.STRING
	case *ast.SelectorExpr, *ast.CallExpr:
		return true
	}
	return false
}

// isText says whether an expression is seen to be a text.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING || e.Kind == token.CHAR
	case *ast.BinaryExpr:
		return isText(e.X) || isText(e.Y)
	case *ast.ParenExpr:
		return isText(e.X)
	}
	return false
}

package methods_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

// The choices in the tags of options are the constants of their types, in this package and in those of the studies.
func TestChoicesAreTheConstants(t *testing.T) {
	constants, tagged := map[string][]string{}, map[string]string{}
	for _, folder := range []string{".", "../uci", "../cifar", "../toy"} {
		for _, path := range must.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t) {
			ast.Inspect(must.Get(parser.ParseFile(token.NewFileSet(), path, nil, 0))(t), func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					if of, is := n.Type.(*ast.Ident); is && len(n.Values) == 1 {
						if value, is := n.Values[0].(*ast.BasicLit); is && value.Kind == token.STRING {
							constants[of.Name] = append(constants[of.Name], must.Get(strconv.Unquote(value.Value))(t))
						}
					}
				case *ast.Field:
					if n.Tag == nil {
						break
					}
					tag := reflect.StructTag(must.Get(strconv.Unquote(n.Tag.Value))(t))
					if _, is := tag.Lookup("option"); !is {
						break
					}
					of := n.Type
					if selector, is := of.(*ast.SelectorExpr); is {
						of = selector.Sel
					}
					if name := of.(*ast.Ident).Name; !slices.Contains([]string{"bool", "int", "float64"}, name) {
						tagged[name] = tag.Get("choices")
					}
				}
				return true
			})
		}
	}
	if len(tagged) != 16 {
		t.Errorf("options of the types %v, want 16", slices.Sorted(maps.Keys(tagged)))
	}
	for name, choices := range tagged {
		if got := strings.Join(constants[name], " "); got != choices || len(constants[name]) < 2 {
			t.Errorf("%s: the choices are %q, the constants %q", name, choices, got)
		}
	}
}

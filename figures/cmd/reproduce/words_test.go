package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/internal/figtest"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

const (
	mostWords  = 40 // of a caption
	mostClaims = 15 // rows
)

// committed is the index of the committed results, read once.
var committed = sync.OnceValues(tables.Committed)

var madeTables = map[string]report.Table{}

// made is a table of the committed results, made once.
func made(t *testing.T, e tables.Exhibit) report.Table {
	t.Helper()
	if _, has := madeTables[e.Name]; !has {
		madeTables[e.Name] = must.Get(e.Table(must.Get(committed())(t)))(t)
	}
	return madeTables[e.Name]
}

// short is an error where a caption says nothing or is long.
func short(t *testing.T, caption string) {
	t.Helper()
	if n := len(strings.Fields(caption)); n == 0 || n > mostWords {
		t.Errorf("%d words, want 1 to %d: %s", n, mostWords, caption)
	}
}

// A table asks a question and says in few words what one sees. What was not run is in no cell. It can be made of no results.
func TestTables(t *testing.T) {
	for _, named := range paper().Tables() {
		t.Run(named.Name, func(t *testing.T) {
			table := made(t, named)
			figtest.Renders(t, table)
			must.Get(named.Table(tables.Of(nil)))(t)
			if table.Name != named.Name || !strings.HasSuffix(table.Title, "?") {
				t.Errorf("%q has the title %q", table.Name, table.Title)
			}
			short(t, table.Caption)
			for _, row := range table.Rows {
				for _, cell := range row.Cells {
					if strings.Contains(cell.Text, "not run") || strings.Contains(cell.Text, "\n") {
						t.Errorf("%s %s has the cell %q", row.Group, row.Name, cell.Text)
					}
				}
			}
			if named.Name == "claims" && len(table.Rows) > mostClaims {
				t.Errorf("%d rows, want at most %d", len(table.Rows), mostClaims)
			}
		})
	}
}

// A figure says in few words what one sees. Only one whose runs are missing cannot be made.
func TestFigures(t *testing.T) {
	x := must.Get(committed())(t)
	for _, named := range paper().Pictures() {
		t.Run(named.Name, func(t *testing.T) {
			f, err := named.Picture(x)
			if err != nil && strings.Contains(err.Error(), "runs are missing") {
				t.Skip(err)
			}
			figtest.PNG(t)(f, err)
			figtest.SameText(t, f)
			if f.Name != named.Name {
				t.Errorf("it calls itself %s", f.Name)
			}
			short(t, f.Caption)
		})
	}
}

// Every number with a deviation or an interval on a slide is in some table, where it may have more digits.
func TestSlides(t *testing.T) {
	var all strings.Builder
	for _, named := range paper().Tables() {
		all.WriteString(must.Get(made(t, named).Render(report.Markdown))(t))
	}
	deviation, interval := regexp.MustCompile(`(\d+\.\d+) ± (\d+\.\d+)`), regexp.MustCompile(`(\S+) \((\S+) to (\S+)\)`)
	known, found := deviation.FindAllStringSubmatch(all.String(), -1), 0
	rounds := func(long, short string) bool {
		a, b := must.Get(strconv.ParseFloat(long, 64))(t), must.Get(strconv.ParseFloat(short, 64))(t)
		return math.Abs(a-b) < 0.51*math.Pow10(strings.Index(short, ".")+1-len(short))
	}
	for _, file := range must.Get(filepath.Glob("../../../notebooks/*.ipynb"))(t) {
		for line := range strings.Lines(string(must.Get(os.ReadFile(file))(t))) {
			if !strings.HasPrefix(strings.TrimSpace(line), `"| `) {
				continue
			}
			for _, is := range deviation.FindAllStringSubmatch(line, -1) {
				found++
				if !slices.ContainsFunc(known, func(of []string) bool { return rounds(of[1], is[1]) && rounds(of[2], is[2]) }) {
					t.Errorf("%s: %s is in no table", file, is[0])
				}
			}
			for _, is := range interval.FindAllStringSubmatch(line, -1) {
				if found++; !strings.Contains(all.String(), is[1]+" ["+is[2]+", "+is[3]+"]") {
					t.Errorf("%s: %s is in no table", file, is[0])
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("%d numbers", found)
	}
}

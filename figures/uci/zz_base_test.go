package uci

import (
	"os"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
)

func TestBase(t *testing.T) {
	x, err := tables.Committed()
	if err != nil { t.Fatal(err) }
	list := Tables()
	for _, n := range []string{"nll", "rmse"} {
		list = append(list, tables.Named{Name: "paired-" + n, Make: func(x *tables.Index) (report.Table, error) { return Paired(x, n) }})
	}
	for _, n := range list {
		x = tables.NewIndex(x.All())
		began := time.Now()
		table, err := n.Make(x)
		if err != nil { t.Errorf("%s: %v", n.Name, err); continue }
		text, err := table.Render(report.Markdown)
		if err != nil { t.Error(err) }
		took := time.Since(began)
		base, err := os.ReadFile("/tmp/w/base/tables/" + n.Name + ".md")
		if err != nil { t.Logf("%s: no base\n%s", n.Name, text); continue }
		lines := strings.Split(strings.TrimRight(string(base), "\n"), "\n")
		citation := lines[len(lines)-1]
		want := strings.TrimRight(strings.Join(lines[:len(lines)-1], "\n"), "\n")
		got := strings.TrimRight(string(text), "\n")
		t.Logf("%s %v; used %d; %s", n.Name, took, len(x.Used()), citation)
		if got != want {
			g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
			for i := range max(len(g), len(w)) {
				if i >= len(g) || i >= len(w) { t.Errorf("%s: %d lines, want %d", n.Name, len(g), len(w)); break }
				if g[i] != w[i] {
					gc, wc := strings.Split(g[i], "|"), strings.Split(w[i], "|")
					for k := range min(len(gc), len(wc)) { if gc[k] != wc[k] { t.Errorf("%s line %d [%s]\n got %s\nwant %s", n.Name, i, gc[min(1,len(gc)-1)], gc[k], wc[k]) } }
				}
			}
		}
	}
	desc := regexp.MustCompile(`(?s)<desc>.*?</desc>\n?`)
	for _, n := range Figures() {
		x = tables.NewIndex(x.All())
		f, err := n.Make(x, 0)
		if err != nil { t.Error(err); continue }
		svg, err := f.Bytes(report.SVG)
		if err != nil { t.Error(err) }
		base, _ := os.ReadFile("/tmp/w/base/figures/" + n.Name + ".svg")
		d := desc.FindString(string(base))
		got, want := desc.ReplaceAllString(string(svg), ""), desc.ReplaceAllString(string(base), "")
		if got != want {
			t.Errorf("%s differs: %d, want %d bytes", n.Name, len(got), len(want))
			g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
			for i := range min(len(g), len(w)) { if g[i] != w[i] { t.Logf("%d\n%s\n%s", i, g[i], w[i]); break } }
		}
		if !strings.HasPrefix(d, "<desc>"+f.Caption) { t.Errorf("%s\n%s", d, f.Caption) }
		t.Logf("%s used %d %s", n.Name, len(x.Used()), d[max(0,len(d)-60):])
	}
	claims, err := Claims(x)
	if err != nil { t.Fatal(err) }
	text, _ := report.ClaimsTable("claims", "", claims).Render(report.Markdown)
	base, _ := os.ReadFile("/tmp/w/base/tables/claims.md")
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if !strings.Contains(string(base), line) { t.Errorf("claim: %s", line) }
	}
	fmt.Println(len(claims))
}

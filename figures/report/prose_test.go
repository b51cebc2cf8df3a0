package report_test

import (
	"reflect"
	"testing"

	"densityuncertainty/environment/must"
	"densityuncertainty/figures/report"
)

const someProse = `
What stands before the first heading is left out.

# _unit
in {{.Unit}}

# plain
A caption
  on two lines.

# full
Which are
long?

Lengths {{template "_unit" .}}.

- A note
  on two lines - with a dash.
- {{if .Long}}Only for long ones.{{end}}
- The last one {{template "_unit" .}}.

`

func TestProse(t *testing.T) {
	type data struct {
		Unit string
		Long bool
	}
	prose := report.ParseProse(someProse)
	for _, c := range []struct {
		name string
		data any
		want report.Table
	}{
		{"an empty note is left out", data{Unit: "metres"}, report.Table{
			Name: "full", Title: "Which are long?", Caption: "Lengths in metres.", Measured: []string{"A note on two lines - with a dash.", "The last one in metres."}}},
		{"a note that depends on the data", data{Unit: "feet", Long: true}, report.Table{
			Name: "full", Title: "Which are long?", Caption: "Lengths in feet.", Measured: []string{"A note on two lines - with a dash.", "Only for long ones.", "The last one in feet."}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := prose.Table("full", c.data); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v; want %+v", got, c.want)
			}
		})
	}
	if got := prose.Caption("plain", nil); got != "A caption on two lines." {
		t.Errorf("the caption of a figure is %q", got)
	}
}

func TestProsePanics(t *testing.T) {
	prose := report.ParseProse(someProse)
	for want, call := range map[string]func(){
		"prose of none":        func() { prose.Caption("none", nil) },
		"prose of plain title": func() { prose.Table("plain", nil) },
		"prose of full":        func() { prose.Table("full", map[string]string{"unit": "m"}) },
		"prose of full note 1": func() { prose.Table("full", struct{ Unit string }{"m"}) },
		"missing value for if": func() { report.ParseProse("# a\n{{if}}") },
	} {
		must.Panic(t, call, want)
	}
}

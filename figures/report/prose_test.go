package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
Lengths {{template "_unit" .}}.

- A note
  on two lines - with a dash.
- {{if .Long}}Only for long ones.{{end}}
- The last one {{template "_unit" .}}.

# notes alone

- One.
`

func TestProse(t *testing.T) {
	type data struct {
		Unit string
		Long bool
	}
	prose := report.ParseProse(someProse)
	for _, c := range []struct {
		name, of string
		data     any
		caption  string
		notes    []string
	}{
		{"a caption alone", "plain", nil, "A caption on two lines.", nil},
		{"an empty note is left out", "full", data{Unit: "metres"}, "Lengths in metres.",
			[]string{"A note on two lines - with a dash.", "The last one in metres."}},
		{"a note that depends on the data", "full", data{Unit: "feet", Long: true}, "Lengths in feet.",
			[]string{"A note on two lines - with a dash.", "Only for long ones.", "The last one in feet."}},
		{"notes alone", "notes alone", nil, "", []string{"One."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			caption, notes := prose.Text(c.of, c.data)
			if caption != c.caption || !slices.Equal(notes, c.notes) {
				t.Errorf("got %q, %q; want %q, %q", caption, notes, c.caption, c.notes)
			}
		})
	}
}

func TestProsePanics(t *testing.T) {
	prose := report.ParseProse(someProse)
	for _, c := range []struct {
		name string
		call func()
		want string
	}{
		{"an unknown name", func() { prose.Text("none", nil) }, "prose of none"},
		{"a missing key", func() { prose.Text("full", map[string]string{"unit": "m"}) }, "prose of full"},
		{"a missing field", func() { prose.Text("full", struct{ Unit string }{"m"}) }, "prose of full note 1"},
		{"a broken template", func() { report.ParseProse("# a\n{{if}}") }, "missing value for if"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, c.want) {
					t.Errorf("panic %q, want one with %q", got, c.want)
				}
			}()
			c.call()
		})
	}
}

package datasets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"densityuncertainty/environment/must"
)

func TestReadCSV(t *testing.T) {
	for _, c := range []struct {
		name, text, target string
		want               Regression
	}{
		{"the last column", "a,b,y\n1,2,3\n4,5,6\n", "", Regression{Features: []string{"a", "b"}, X: []float64{1, 2, 4, 5}, Y: []float64{3, 6}, N: 2, D: 2}},
		{"a named one", "a,y,b\n1,2,3\n", "y", Regression{Features: []string{"a", "b"}, X: []float64{1, 3}, Y: []float64{2}, N: 1, D: 2}},
		{"semicolons, quotes, marks", "\xef\xbb\xbf\"fat, raw\";y\r\n -1.5e-3 ;\"7\"\r\n\r\n", "", Regression{Features: []string{"fat, raw"}, X: []float64{-1.5e-3}, Y: []float64{7}, N: 1, D: 1}},
		{"blanks before quotes", "\"a\", \"y\"\n1, \"2\"\n", "", Regression{Features: []string{"a"}, X: []float64{1}, Y: []float64{2}, N: 1, D: 1}},
		{"quotes and a line's end in quotes", "\"a \"\"b\"\"\n c\",\"\"\"y\"\n1,2\n", "", Regression{Features: []string{"a \"b\"\n c"}, X: []float64{1}, Y: []float64{2}, N: 1, D: 1}},
		{"Ctrl-Z at the end", "a,y\n1,2\r\n\x1a", "", Regression{Features: []string{"a"}, X: []float64{1}, Y: []float64{2}, N: 1, D: 1}},
		{"float64 in the fewest digits", "a,y\n1.1805916207174113e+21,1e23\n", "", Regression{Features: []string{"a"}, X: []float64{0x1p70}, Y: []float64{1e23}, N: 1, D: 1}},
		{"whole numbers that float64 holds", "a,y\n9007199254740992,1e300\n", "", Regression{Features: []string{"a"}, X: []float64{1 << 53}, Y: []float64{1e300}, N: 1, D: 1}},
		{"two marks, blank lines, and one at the end", "\xef\xbb\xbf\ufeff \na,y\n  \n1,2\n\t\n  ", "", Regression{Features: []string{"a"}, X: []float64{1}, Y: []float64{2}, N: 1, D: 1}},
		{"a separator by name", "\ufeffSEP=;\r\na,b;y\r\n1;2\r\n", "", Regression{Features: []string{"a,b"}, X: []float64{1}, Y: []float64{2}, N: 1, D: 1}},
		{"tabs", "x\ty\n1\t2", "x", Regression{Features: []string{"y"}, X: []float64{2}, Y: []float64{1}, N: 1, D: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "my.set.csv")
			must.Do(t, os.WriteFile(file, []byte(c.text), 0o600))
			got := must.Get(ReadCSV(file, c.target))(t)
			c.want.Name = "my.set"
			if !reflect.DeepEqual(*got, c.want) {
				t.Errorf("%+v, want %+v", *got, c.want)
			}
			must.Do(t, got.Check())
		})
	}
}

func TestReadCSVErrors(t *testing.T) {
	for _, c := range []struct {
		name, text, target string
		want               []string
	}{
		{"nothing", "", "", []string{"no line of column names"}},
		{"names alone", "a,b\n", "", []string{"no line of values"}},
		{"no names", "1,2\n3,4\n", "", []string{"line 1, column 1: the column's name is the number 1; ", "write one above the data"}},
		{"no names, and a missing value", "red,2,NA\n1,3,4\n", "", []string{"line 1, column 2: the column's name is the number 2; "}},
		{"no names, and an infinite value", "a,-1e999\n3,4\n", "", []string{"line 1, column 2: the column's name is the number -1e999; "}},
		{"names of years", "a,1990,y\n3,4,5\n", "", []string{"call the column x1990"}},
		{"the index of pandas", ",x,y\n0,1,2\n1,3,4\n", "", []string{"line 1, column 1: the column has no name; ", "to_csv(index=False)"}},
		{"row names of R, by semicolons", "\"\";\"x\";\"y\"\n\"1\";1;2\n", "y", []string{"line 1, column 1: the column has no name; ", "row.names = FALSE"}},
		{"the index of pandas, written again", "Unnamed: 0,x,y\n0,1,2\n", "", []string{"line 1, column 1: the column has no name; "}},
		{"a comma too many", "x,y,\n1,2,\n", "", []string{"line 1, column 3: the column has no name; "}},
		{"one column", "y\n1\n", "", []string{"one column, \"y\"", "semicolons"}},
		{"no such target", "a,b\n1,2\n", "y", []string{`no column "y"`, "a, b"}},
		{"two such targets", "y,a,y\n1,2,3\n", "y", []string{`two columns "y"`}},
		{"two inputs of a name", "a,\"a\",y\n1,2,3\n", "", []string{`line 1, column 2: there are two columns "a"; give each`}},
		{"a gap", "a,y\n1,2\n,4\n", "", []string{"line 3, column 1: a has no value (\"\"); ", "leave the line out"}},
		{"a word", "a,y\n1,2\n3,red\n", "", []string{"line 3, column 2: y: ", `"red"`, "decimal numbers"}},
		{"not finite", "a,y\n1,-Inf\n", "", []string{"line 2, column 2: y: not a finite number", "leave the line out, or give it a finite value"}},
		{"a decimal comma", "a;y\n1,5;2\n", "", []string{"line 2, column 1: a: ", `"1,5"`, "with a point"}},
		{"a short line", "a,b,y\n1,2,3\n\n4,5\n", "", []string{"line 4: wrong number of fields: 2, expected 3"}},
		{"missing values by name", "a,y\n1,2\nNA,4\n", "", []string{"line 3, column 1: a has no value (\"NA\"); ", "leave the line out"}},
		{"UTF-16", "\xff\xfea\x00,\x00y\x00\n\x00", "", []string{"line 1, column 1: ", "not UTF-8", "save it as UTF-8"}},
		{"UTF-16 without a mark", "a\x00,\x00y\x00\n\x00", "", []string{"not UTF-8"}},
		{"line ends of old Macs", "a,y\r1,2\r3,4\r", "", []string{"lines end with CR alone", "line ends of Unix"}},
		{"a whole number above 2^53", "a,y\n9007199254740993,2\n", "", []string{"float64 does not hold the whole number 9007199254740993"}},
		{"a missing value of Excel", "a,y\n#DIV/0!,2\n", "", []string{"a has no value (\"#DIV/0!\")"}},
		{"a quote in a field", "a,y\n1,2\"\n", "", []string{"line 2: bare \" in non-quoted-field", "doubled"}},
		{"it with an exponent", "a,y\n1.2345678901234567e16,2\n", "", []string{"a: float64 does not hold the whole number 1.2345678901234567e16, which would be 12345678901234568; leave the column out"}},
		{"it with a point", "a,y\n-12345678901234567.0,2\n", "", []string{"float64 does not hold"}},
		{"an identifier, below a named separator", "sep=,\n\na,y\n12345678901234567,2\n", "", []string{"line 4, column 1: a: float64 does not hold"}},
		{"row names of R without a name", "x,y\n1,2,3\n2,4,5\n", "", []string{"line 2: wrong number of fields: 3, expected 2 (2 lines in all); if a name of the row comes first, as R writes it", "row.names = FALSE"}},
		{"it, with blanks", "\"x\" \"y\"\n\"1\" 1 2\n", "", []string{"separated by commas, semicolons or tabs (R: write.csv"}},
		{"a date", "day,y\n2026-11-28,1\n28.11.2026,2\n", "", []string{`line 2, column 1: day: "2026-11-28" is a date or a time, and not a decimal number (2 lines in all); count days`}},
		{"a time", "a,y\n9:30,1\n", "", []string{`"9:30" is a date or a time`}},
		{"a month", "a,y\n28-Nov-2026,1\n", "", []string{`"28-Nov-2026" is a date or a time`}},
		{"no date", "a,y\n1.5.2,1\nmayor,2\n", "", []string{`"1.5.2" is not a decimal number (2 lines in all)`}},
		{"an open quote", "a,y\n1,\"2\n", "", []string{"line 2: extraneous or missing"}},
		{"text after a quote", "a,y\n\"1\"x,2\n", "", []string{"line 2: extraneous or missing"}},
		{"many faults", "a,a,y\n1,red,NA\n-,2\n\n\"1\"2,3,4\n,green,\n1,blue,12345678901234567\n", "", []string{
			`line 1, column 2: there are two columns "a"`, `line 2, column 2: a: "red" is not a decimal number (3 lines in all); `,
			"line 2, column 3: y has no value (\"NA\") (2 lines in all); ", "line 3: wrong number of fields: 2", "line 5: extraneous or missing",
			"line 6, column 1: a has no value (\"\"); ", "line 7, column 3: y: float64 does not hold"}},
		{"many columns", strings.Repeat("x,", 12) + "y\n1\n", "", []string{"line 1, column 11: there are two", "there are 2 more kinds of faults"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := CSV{Target: c.target}.parse(c.text, "mine.csv")
			for _, want := range append(c.want, "datasets: mine.csv: ") {
				must.Err(t, err, want)
			}
		})
	}
	must.GetErr(ReadCSV(filepath.Join(t.TempDir(), "none.csv"), ""))(t, "none.csv: ")
}

// Words become inputs, and missing numbers NaN with a flag; a row as it is written in the file has the same inputs.
func TestCSVCategories(t *testing.T) {
	text := "wood;length;age;y\noak;1;NA;5\n ash ;2;3;6\n\"oak\";3;4;7\n;4;5;8\n"
	c := CSV{Categories: []string{"wood"}, FillMissing: true}
	set := must.Get(c.parse(text, ""))(t)
	want := &Regression{
		Features: []string{"wood is missing", "wood=ash", "wood=oak", "length", "age", "age is missing"}, N: 4, D: 6, Y: []float64{5, 6, 7, 8},
		Columns: Columns{{Name: "wood", Categories: []string{"", "ash", "oak"}}, {Name: "length"}, {Name: "age", MayMiss: true}},
	}
	nan := math.NaN()
	rows := [][]float64{{0, 0, 1, 1, nan, 1}, {0, 1, 0, 2, 3, 0}, {0, 0, 1, 3, 4, 0}, {1, 0, 0, 4, 5, 0}}
	want.X = slices.Concat(rows...)
	if got := fmt.Sprintf("%+v", set); got != fmt.Sprintf("%+v", want) {
		t.Errorf("%s, want %+v", got, want)
	}
	must.Do(t, set.Check())
	for i, cells := range [][]string{{"oak", "1", "NA"}, {"ash", "2", "3"}} {
		if got := must.Get(set.Columns.Inputs(cells))(t); fmt.Sprint(got) != fmt.Sprint(rows[i]) {
			t.Errorf("%q is %v, want %v", cells, got, rows[i])
		}
	}
	_, err := set.Columns.Inputs([]string{"elm", "", "x"})
	must.Err(t, err, `column 1: wood: there is no category "elm"; there are ["" "ash" "oak"]`, "column 2: length has no value", `column 3: age: "x" is not a decimal number`)
	must.GetErr(set.Columns.Inputs([]string{"oak"}))(t) // a short row

	scale := FitScaler(set.X, set.D, []int{0, 1, 2})
	must.Do(t, set.Columns.Fill(rows[0], scale))
	if rows[0][4] != 3.5 || scale.Std[4] != 0.5 { // of 3 and 4
		t.Errorf("filled with %g at a deviation of %g", rows[0][4], scale.Std[4])
	}
	row := slices.Clone(set.Row(0)) // a missing number where no training row misses one is the mean alone
	must.Do(t, set.Columns.Fill(row, FitScaler(set.X, set.D, []int{1, 2, 3})))
	if row[4] != 4 || row[5] != 0 {
		t.Errorf("filled with %g, marked with %g", row[4], row[5])
	}
	for _, c := range []struct {
		trainOn []int
		row     int
		want    string
	}{
		{[]int{0, 1, 2}, 3, "wood is missing, and no training row is like this"},
		{[]int{0}, 0, "age has no value in any training row"},
	} {
		row := slices.Clone(set.Row(c.row))
		must.Err(t, set.Columns.Fill(row, FitScaler(set.X, set.D, c.trainOn)), c.want)
	}

	for _, bad := range []struct {
		c    CSV
		want []any
	}{
		{CSV{Categories: []string{"wood"}}, []any{"column 3: age has no value", "column 1: wood has no value (\"\"); give it one, or leave the line out; with CSV.FillMissing"}},
		{CSV{Target: "wood", Categories: []string{"wood", "colour"}, FillMissing: true}, []any{"the target wood cannot have categories", `no column "colour" of categories`}},
		{CSV{Target: "age", Categories: []string{"wood"}, FillMissing: true}, []any{`column 3: age has no value ("NA"); give the target one`}},
	} {
		must.GetErr(bad.c.parse(text, ""))(t, bad.want...)
	}
	for name, text := range map[string]string{"age is missing": "wood,age,age is missing,y\na,NA,1,2\n", "wood=oak": "wood,wood=oak,y\noak,1,2\n", "wood is missing": "wood is missing,wood,y\n1,,2\n"} {
		must.GetErr(c.parse(text, ""))(t, fmt.Sprintf("two inputs %q", name))
	}
	var many strings.Builder
	for i := range maxCategories + 1 {
		fmt.Fprintf(&many, "id%d,1\n", i)
	}
	must.GetErr((CSV{Categories: []string{"id"}}).parse("id,y\n"+many.String(), ""))(t, "id has 1001 categories")
}

// In a column of words only an empty cell is missing, and what MissingWords names.
func TestMissingWords(t *testing.T) {
	text := "fence,country,age,y\nNone,NA,-,1\nnil,.,2,2\n,-,unknown,3\nunknown,\"\",3,4\n"
	both := []string{"fence", "country"}
	set := must.Get((CSV{Categories: both, FillMissing: true, MissingWords: []string{"unknown"}}).parse(text, ""))(t)
	want := []string{"fence is missing", "fence=None", "fence=nil", "country is missing", "country=-", "country=.", "country=NA", "age", "age is missing"}
	if !slices.Equal(set.Features, want) {
		t.Errorf("the inputs are %q", set.Features)
	}
	for i, cells := range [][]string{{"None", "NA", "NA"}, {"nil", ".", "2"}, {"unknown", "-", ""}, {"", "unknown", "3"}} {
		if got := must.Get(set.Columns.Inputs(cells))(t); fmt.Sprint(got) != fmt.Sprint(set.Row(i)) {
			t.Errorf("row %d is %v, as cells %v", i, set.Row(i), got)
		}
	}
	must.GetErr(set.Columns.Inputs([]string{"none", "NA", "1"}))(t, `there is no category "none"`)
	set = must.Get((CSV{Categories: []string{"country"}}).parse("country,y\nNA,1\nNone,2\n", ""))(t)
	if !slices.Equal(set.Features, []string{"country=NA", "country=None"}) {
		t.Errorf("without FillMissing %q", set.Features)
	}
}

// A text is refused with an error that points into it, or is a set that Check takes.
func FuzzParseCSV(f *testing.F) {
	for _, seed := range []string{"", "a,y\n1,2", "a;b;y\r\n1;2;3\r\n", "a\ty\n\"1\"\t2\n", "\xef\xbb\xbfa,y\n0x1,1_0", "a,y\n1,1e999", "\"a\nb\",y\n1,2\n3", "a,,y\n,,", "\"", ",", "a,y\n1,\"2", " \na, \"y\"\n\n1,2", "sep=;\na;y", "a,y\r1,2\r", "\xff\xfea\x00"} {
		f.Add(seed, "", "", false)
		f.Add(seed, "a", "", true)
		f.Add(seed, "", "a b", true)
	}
	f.Fuzz(func(t *testing.T, text, target, categories string, fill bool) {
		set, err := CSV{Target: target, Categories: strings.Fields(categories), FillMissing: fill}.parse(text, "fuzz")
		if err != nil {
			for _, place := range regexp.MustCompile(`(?m)^datasets: fuzz: line (\d+)`).FindAllStringSubmatch(err.Error(), -1) {
				if line, lines := must.Get(strconv.Atoi(place[1]))(t), strings.Count(text, "\n")+1; line > lines {
					t.Errorf("%v points outside a text of %d lines", err, lines)
				}
			}
			return
		}
		head, rows, _ := strings.Cut(text, "\n")
		if name, rest, more := strings.Cut(head, ","); more && !strings.ContainsAny(text, "\"\ufeff;\t") { // with quotes another reader reads it
			again, err := CSV{Target: target, Categories: strings.Fields(categories), FillMissing: fill}.parse(`"`+strings.TrimSpace(name)+`",`+rest+"\n"+rows, "fuzz")
			if err != nil || fmt.Sprint(*again) != fmt.Sprint(*set) {
				t.Errorf("%+v, and with a quote %+v, %v", set, again, err)
			}
		}
		set.Name = "fuzz"
		if set.Y[0] == set.Y[len(set.Y)-1] { // perhaps constant, which Check refuses
			set.Y[0]++
		}
		must.Do(t, set.Check())
		for j, name := range set.Features {
			if _, err := strconv.ParseFloat(name, 64); name == "" || err == nil || slices.Contains(set.Features[:j], name) {
				t.Errorf("feature %d is called %q", j, name)
			}
		}
	})
}

func TestCheckRegression(t *testing.T) {
	nan := math.NaN()
	for want, set := range map[string]Regression{
		"N is 0": {},
		"X has 1 and Y 3 values; 1 examples of 2 features have 2 and 1": {X: []float64{1}, Y: []float64{1, 2, 3}, N: 1, D: 2},
		"2 names of 1 features":                {Features: []string{"a", "b"}, X: []float64{1}, Y: []float64{1}, N: 1, D: 1},
		`two features are called "a"`:          {Features: []string{"a", "a"}, X: []float64{1, 2}, Y: []float64{1}, N: 1, D: 2},
		"example 1, feature 1 is NaN":          {X: []float64{1, 2, 3, nan}, Y: []float64{1, 2}, N: 2, D: 2},
		"the target is 7 in all 3 examples":    {X: []float64{1, 2, 3}, Y: []float64{7, 7, 7}, N: 3, D: 1},
		"the Columns are 2 inputs, and D is 1": {X: []float64{1}, Y: []float64{1}, N: 1, D: 1, Columns: Columns{{MayMiss: true}}},
		"target of example 0 is NaN":           {X: []float64{1}, Y: []float64{nan}, N: 1, D: 1},
	} {
		must.Err(t, set.Check(), want)
	}
}

// .github/CONTRIBUTING.md has the time of both beside that of pandas.
func BenchmarkCSV(b *testing.B) {
	for name, c := range map[string]CSV{"words": {Categories: []string{"zip", "kind"}}, "numbers": {}} {
		rng := rand.New(rand.NewPCG(1, 2))
		var text strings.Builder
		text.WriteString("zip,kind,n1,n2,n3,n4,n5,n6,n7,n8,n9,y\n")
		for range 100000 {
			if c.Categories != nil {
				fmt.Fprintf(&text, "z%d,k%d", rng.IntN(900), rng.IntN(10))
			} else {
				fmt.Fprintf(&text, "%v,%v", rng.NormFloat64(), rng.NormFloat64())
			}
			for range 10 {
				fmt.Fprintf(&text, ",%v", rng.NormFloat64())
			}
			text.WriteByte('\n')
		}
		file := filepath.Join(b.TempDir(), "a.csv")
		must.Do(b, os.WriteFile(file, []byte(text.String()), 0o600))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must.Get(c.Read(file))(b)
			}
		})
	}
}

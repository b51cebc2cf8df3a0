package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"densityuncertainty/datasets"
	"densityuncertainty/datasets/internal/published"
)

// The published layout is laid out anew from what is embedded, and made into
// embedded files again: nothing may change on the way round.
func TestRoundTrip(t *testing.T) {
	gal, energyCSV := publishedLayout(t)
	out := t.TempDir()
	if err := run(gal, energyCSV, out); err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(out, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != len(published.Sets)+1 {
		t.Errorf("made %v", made)
	}
	for _, path := range made {
		if !bytes.Equal(unpack(t, path), unpack(t, filepath.Join("../../uci", filepath.Base(path)))) {
			t.Errorf("%s differs from the embedded file", filepath.Base(path))
		}
	}
}

func TestRefusesOtherFiles(t *testing.T) {
	for _, c := range []struct {
		name                 string
		file, old, new, says string
	}{
		{"other table", "bostonHousing/data/data.txt", "24.00", "24.01", "MD5"},
		{"other split", "bostonHousing/data/index_train_3.txt", "", "", "splits"},
		{"other inputs", "energy.csv", "\n0.98,", "\n0.97,", "feature 0"},
		{"other heating load", "energy.csv", ",15.55,", ",15.65,", "heating load"},
	} {
		t.Run(c.name, func(t *testing.T) {
			gal, energyCSV := publishedLayout(t)
			path := filepath.Join(gal, filepath.FromSlash(c.file))
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), c.old, c.new, 1)
			if c.old == "" { // swap the first two lines
				lines := strings.SplitN(changed, "\n", 3)
				changed = lines[1] + "\n" + lines[0] + "\n" + lines[2]
			}
			writeFile(t, path, changed)
			if err := run(gal, energyCSV, t.TempDir()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want something about %q", err, c.says)
			}
		})
	}
}

func publishedLayout(t *testing.T) (gal, energyCSV string) {
	t.Helper()
	gal = t.TempDir()
	for _, set := range published.Sets {
		dir := filepath.Join(gal, set.Folder, "data")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		r, err := datasets.UCI(set.Name)
		if err != nil {
			t.Fatal(err)
		}
		splits, err := datasets.GalSplits(set.Name)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "data.txt"), string(unpack(t, filepath.Join("../../uci", set.Name+".txt.gz"))))
		features := make([]int, r.D)
		for j := range features {
			features[j] = j
		}
		writeFile(t, filepath.Join(dir, "index_features.txt"), lines(features))
		writeFile(t, filepath.Join(dir, "index_target.txt"), lines([]int{r.D}))
		writeFile(t, filepath.Join(dir, "n_splits.txt"), lines([]int{len(splits)}))
		for i, s := range splits {
			writeFile(t, filepath.Join(dir, fmt.Sprintf("index_train_%d.txt", i)), lines(s.Train))
			writeFile(t, filepath.Join(dir, fmt.Sprintf("index_test_%d.txt", i)), lines(s.Test))
		}
	}
	energyCSV = filepath.Join(gal, "energy.csv")
	writeFile(t, energyCSV, energyText(t))
	return gal, energyCSV
}

// energyText writes both targets of the energy set as one CSV table.
func energyText(t *testing.T) string {
	t.Helper()
	heating, err := datasets.UCI("energy")
	if err != nil {
		t.Fatal(err)
	}
	cooling := strings.Fields(string(unpack(t, "../../uci/energy-cooling.txt.gz")))
	var b strings.Builder
	fmt.Fprintln(&b, "X1,X2,X3,X4,X5,X6,X7,X8,Y1,Y2")
	for i, y := range heating.Y {
		for _, x := range heating.Row(i) {
			fmt.Fprintf(&b, "%v,", x)
		}
		fmt.Fprintf(&b, "%v,%s\n", y, cooling[i])
	}
	return b.String()
}

func lines(numbers []int) string {
	var b strings.Builder
	for _, i := range numbers {
		b.WriteString(strconv.Itoa(i))
		b.WriteByte('\n')
	}
	return b.String()
}

func unpack(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

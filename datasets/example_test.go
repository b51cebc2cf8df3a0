package datasets_test

import (
	"fmt"
	"os"
	"path/filepath"

	"densityuncertainty/datasets"
)

// Load a set, take its first published split, and standardise it by what the
// training rows say.
func Example() {
	r, err := datasets.UCI("yacht")
	if err != nil {
		fmt.Println(err)
		return
	}
	splits, err := datasets.GalSplits("yacht")
	if err != nil {
		fmt.Println(err)
		return
	}
	train, test := splits[0].Train, splits[0].Test

	inputs := datasets.FitScaler(r.X, r.D, train)
	target := datasets.FitScaler(r.Y, 1, train)
	x, y := r.Take(test)
	x, y = inputs.Transform(x), target.Transform(y)

	fmt.Printf("%d rows of %d features to train on, %d to test on\n", len(train), r.D, len(test))
	fmt.Printf("test inputs: %d values, test targets: %d values\n", len(x), len(y))
	fmt.Printf("an error of 0.1 standardised is %.2f in units of the target\n", 0.1*target.Std[0])
	// Output:
	// 277 rows of 6 features to train on, 31 to test on
	// test inputs: 186 values, test targets: 31 values
	// an error of 0.1 standardised is 1.51 in units of the target
}

// A table of your own, as a spreadsheet exports it.
func ExampleReadCSV() {
	folder, err := os.MkdirTemp("", "own")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "beams.csv")
	if err := os.WriteFile(file, []byte("length;width;strength\n1.5;0.2;31\n2;0.25;28.5\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	beams, err := datasets.ReadCSV(file, "strength")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(beams.Name, beams.Features, beams.X, beams.Y)
	// Output: beams [length width] [1.5 0.2 2 0.25] [31 28.5]
}

package notebook_test

import (
	"fmt"

	"densityuncertainty/environment/notebook"
)

func Example() {
	notebook.Markdown("## Results")
	notebook.SVG([]byte("<svg/>"), "predictions with error bars")
	// Output:
	// ## Results
	// [picture: predictions with error bars]
}

// One cell trains and keeps what it found, the next one shows it.
func ExampleKeep() {
	notebook.Keep("losses", map[string][]float64{"density": {2.3, 1.7}})

	losses := notebook.Kept[map[string][]float64]("losses")
	fmt.Println(losses["density"][1])
	// Output: 1.7
}

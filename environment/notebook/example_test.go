package notebook_test

import "densityuncertainty/environment/notebook"

func Example() {
	notebook.Markdown("## Results")
	notebook.Table([]string{"method", "RMSE"}, [][]string{{"density", "2.81"}})
	notebook.SVG([]byte("<svg/>"), "predictions with error bars")
	// Output:
	// ## Results
	// | method  | RMSE |
	// |:--------|-----:|
	// | density | 2.81 |
	//
	// [picture: predictions with error bars]
}

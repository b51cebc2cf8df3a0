package datasets

import (
	"fmt"
	"strings"
)

const (
	yearName  = "year"
	yearRows  = 515345
	yearTrain = 463715
	yearD     = 90
)

// entry is what is known about a set without reading its file; uci/NOTICE.md has origin, citation and terms.
type entry struct {
	name         string
	file         string // embedded file; "" for year
	target       string // embedded file of the target, where it is not in file
	n, d, splits int
	features     []string
}

func (e *entry) describe() *Regression {
	return &Regression{Name: e.name, Features: append([]string(nil), e.features...), N: e.n, D: e.d}
}

var energyFeatures = []string{
	"relative compactness", "surface area", "wall area", "roof area",
	"overall height", "orientation", "glazing area", "glazing area distribution",
}

// catalogue lists the sets in the order of the paper's UCI table, year last.
var catalogue = []entry{
	{
		name: "boston", file: "boston.txt", n: 506, d: 13, splits: 20,
		features: []string{"CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"},
	},
	{
		name: "concrete", file: "concrete.txt", n: 1030, d: 8, splits: 20,
		features: []string{"cement", "blast furnace slag", "fly ash", "water", "superplasticizer", "coarse aggregate", "fine aggregate", "age"},
	},
	{
		name: "energy", file: "energy.txt", n: 768, d: 8, splits: 20,
		features: energyFeatures,
	},
	{
		name: "energy-cooling", file: "energy.txt", target: "energy-cooling.txt", n: 768, d: 8, splits: 20,
		features: energyFeatures,
	},
	{
		name: "kin8nm", file: "kin8nm.txt", n: 8192, d: 8, splits: 20,
		features: []string{"theta1", "theta2", "theta3", "theta4", "theta5", "theta6", "theta7", "theta8"},
	},
	{
		name: "naval", file: "naval.txt", n: 11934, d: 16, splits: 20,
		features: []string{"lp", "v", "GTT", "GTn", "GGn", "Ts", "Tp", "T48", "T1", "T2", "P48", "P1", "P2", "Pexh", "TIC", "mf"},
	},
	{
		name: "protein", file: "protein.txt", n: 45730, d: 9, splits: 5,
		features: []string{"F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"},
	},
	{
		name: "wine", file: "wine.txt", n: 1599, d: 11, splits: 20,
		features: []string{
			"fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides",
			"free sulfur dioxide", "total sulfur dioxide", "density", "pH", "sulphates", "alcohol",
		},
	},
	{
		name: "yacht", file: "yacht.txt", n: 308, d: 6, splits: 20,
		features: []string{
			"longitudinal position of the centre of buoyancy", "prismatic coefficient", "length-displacement ratio",
			"beam-draught ratio", "length-beam ratio", "Froude number",
		},
	},
	{
		name: yearName, n: yearRows, d: yearD, splits: 1,
		features: yearFeatures(),
	},
}

// yearFeatures names the twelve timbre averages and the 78 timbre covariances.
func yearFeatures() []string {
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("timbre average %d", i+1))
	}
	for i := range yearD - 12 {
		names = append(names, fmt.Sprintf("timbre covariance %d", i+1))
	}
	return names
}

// UCINames lists the names that [UCI] and [GalSplits] accept, in the order of the
// paper's table: energy is the heating load, energy-cooling the cooling load.
func UCINames() []string {
	names := make([]string, len(catalogue))
	for i, e := range catalogue {
		names[i] = e.name
	}
	return names
}

// UCISize is the number of examples, of features and of published splits of a UCI
// data set by its name, known without reading it. It returns an error for a name that
// is not among UCINames.
func UCISize(name string) (examples, features, splits int, err error) {
	e, err := lookup(name)
	if err != nil {
		return 0, 0, 0, err
	}
	return e.n, e.d, e.splits, nil
}

func lookup(name string) (*entry, error) {
	for i := range catalogue {
		if catalogue[i].name == name {
			return &catalogue[i], nil
		}
	}
	return nil, fmt.Errorf("datasets: unknown data set %q; the known ones are %s", name, strings.Join(UCINames(), ", "))
}

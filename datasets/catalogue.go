package datasets

import (
	"fmt"
	"strings"
)

// Licence statements shared by several sets.
const (
	ccBy4     = "CC BY 4.0 (UCI Machine Learning Repository)"
	unstated  = "no licence stated by the source; customary use is research with citation"
	duaGraff  = "Dua & Graff, UCI Machine Learning Repository"
	yearName  = "year"
	yearRows  = 515345
	yearTrain = 463715
	yearD     = 90
)

// entry is what is known about a set without reading its file.
type entry struct {
	name, title, citation, licence string
	file                           string // embedded file; "" for year
	target                         string // embedded file of the target, where it is not in file
	n, d, splits                   int
	features                       []string
}

func (e *entry) describe() *Regression {
	return &Regression{
		Name: e.name, Title: e.title, Citation: e.citation, Licence: e.licence,
		Features: append([]string(nil), e.features...), N: e.n, D: e.d,
	}
}

var energyFeatures = []string{
	"relative compactness", "surface area", "wall area", "roof area",
	"overall height", "orientation", "glazing area", "glazing area distribution",
}

// catalogue lists the sets in the order of the paper's UCI table, year last.
var catalogue = []entry{
	{
		name: "boston", title: "Boston housing", file: "boston.txt", n: 506, d: 13, splits: 20,
		citation: "Harrison & Rubinfeld, Hedonic housing prices and the demand for clean air, J. Environmental Economics and Management 5, 1978",
		licence:  unstated,
		features: []string{"CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"},
	},
	{
		name: "concrete", title: "Concrete compressive strength", file: "concrete.txt", n: 1030, d: 8, splits: 20,
		citation: "Yeh, Modeling of strength of high-performance concrete using artificial neural networks, Cement and Concrete Research 28, 1998; " + duaGraff,
		licence:  ccBy4,
		features: []string{"cement", "blast furnace slag", "fly ash", "water", "superplasticizer", "coarse aggregate", "fine aggregate", "age"},
	},
	{
		name: "energy", title: "Energy efficiency (heating load)", file: "energy.txt", n: 768, d: 8, splits: 20,
		citation: "Tsanas & Xifara, Accurate quantitative estimation of energy performance of residential buildings using statistical machine learning tools, Energy and Buildings 49, 2012; " + duaGraff,
		licence:  ccBy4,
		features: energyFeatures,
	},
	{
		name: "energy-cooling", title: "Energy efficiency (cooling load)", file: "energy.txt", target: "energy-cooling.txt", n: 768, d: 8, splits: 20,
		citation: "Tsanas & Xifara, Accurate quantitative estimation of energy performance of residential buildings using statistical machine learning tools, Energy and Buildings 49, 2012; " + duaGraff,
		licence:  ccBy4,
		features: energyFeatures,
	},
	{
		name: "kin8nm", title: "Kin8nm (forward dynamics of an eight-link robot arm)", file: "kin8nm.txt", n: 8192, d: 8, splits: 20,
		citation: "Delve archive, University of Toronto, kin family of data sets",
		licence:  unstated,
		features: []string{"theta1", "theta2", "theta3", "theta4", "theta5", "theta6", "theta7", "theta8"},
	},
	{
		name: "naval", title: "Naval propulsion plant (compressor decay)", file: "naval.txt", n: 11934, d: 16, splits: 20,
		citation: "Coraddu et al., Machine learning approaches for improving condition-based maintenance of naval propulsion plants, J. Engineering for the Maritime Environment, 2014; " + duaGraff,
		licence:  ccBy4,
		features: []string{"lp", "v", "GTT", "GTn", "GGn", "Ts", "Tp", "T48", "T1", "T2", "P48", "P1", "P2", "Pexh", "TIC", "mf"},
	},
	{
		name: "protein", title: "Protein tertiary structure (CASP)", file: "protein.txt", n: 45730, d: 9, splits: 5,
		citation: "Rana, Physicochemical properties of protein tertiary structure; " + duaGraff,
		licence:  ccBy4,
		features: []string{"F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"},
	},
	{
		name: "wine", title: "Wine quality, red", file: "wine.txt", n: 1599, d: 11, splits: 20,
		citation: "Cortez et al., Modeling wine preferences by data mining from physicochemical properties, Decision Support Systems 47, 2009; " + duaGraff,
		licence:  ccBy4,
		features: []string{
			"fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides",
			"free sulfur dioxide", "total sulfur dioxide", "density", "pH", "sulphates", "alcohol",
		},
	},
	{
		name: "yacht", title: "Yacht hydrodynamics", file: "yacht.txt", n: 308, d: 6, splits: 20,
		citation: "Gerritsma, Onnink & Versluis, Geometry, resistance and stability of the Delft systematic yacht hull series, 1981; " + duaGraff,
		licence:  ccBy4,
		features: []string{
			"longitudinal position of the centre of buoyancy", "prismatic coefficient", "length-displacement ratio",
			"beam-draught ratio", "length-beam ratio", "Froude number",
		},
	},
	{
		name: yearName, title: "YearPredictionMSD", n: yearRows, d: yearD, splits: 1,
		citation: "Bertin-Mahieux, Ellis, Whitman & Lamere, The Million Song Dataset, ISMIR 2011; " + duaGraff,
		licence:  ccBy4,
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

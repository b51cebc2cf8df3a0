package uci_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"densityuncertainty/dul/nets"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/uci"
)

// rowsOf are the numbers of examples to train on, held out and to test on.
func rowsOf(d experiment.Data) (train, held, test int) {
	if d.HeldOut.Inputs != nil {
		held = d.HeldOut.Len()
	}
	return d.Train.Len(), held, d.Sets[0].Len()
}

// Every way to split has the published sizes: hyperparameters are chosen, and training is stopped, by a fifth of the
// training part.
func TestSplits(t *testing.T) {
	for _, c := range []struct {
		data              uci.Data
		splits            int
		train, held, test int
	}{
		{uci.Data{Name: "yacht"}, 20, 277, 0, 31},
		{uci.Data{Name: "yacht", Kind: uci.Random}, 20, 277, 0, 31},
		{uci.Data{Name: "yacht", HeldOut: true}, 20, 222, 55, 31},
		{uci.Data{Name: "yacht", Validation: true}, 20, 222, 0, 55},
		{uci.Data{Name: "yacht", Validation: true, HeldOut: true}, 20, 178, 44, 55},
		{uci.Data{Name: "protein"}, 5, 41157, 0, 4573},
		{uci.Data{Name: "yacht", Kind: uci.Hole}, 12, 283, 0, 25},
	} {
		if c.data.Splits() != c.splits {
			t.Errorf("%+v has %d splits, want %d", c.data, c.data.Splits(), c.splits)
		}
		train, held, test := rowsOf(must.Get(c.data.Load(context.Background(), 0))(t))
		if train != c.train || held != c.held || test != c.test {
			t.Errorf("%+v: %d examples to train on, %d held out, %d to test on; want %d, %d and %d", c.data, train, held, test, c.train, c.held, c.test)
		}
	}
	if gaps := (uci.Data{Name: "yacht", Kind: uci.Gap}); gaps.Splits() != 6 {
		t.Errorf("%d gap splits of 6 inputs", gaps.Splits())
	}
}

// The error of predicting the mean of the training targets is that of predicting 0 for standardised ones.
func TestMeanError(t *testing.T) {
	for _, d := range []uci.Data{{Name: "yacht"}, {Name: "yacht", Kind: uci.Random}, {Name: "yacht", Kind: uci.Gap}, {Name: "yacht", Kind: uci.Hole}, {Name: "yacht", Validation: true}} {
		data := must.Get(d.Load(t.Context(), 3))(t)
		squares := 0.0
		for _, z := range data.Sets[0].Targets {
			squares += z * z / float64(data.Sets[0].Len())
		}
		want := math.Sqrt(squares) * data.Unit
		must.Near(t, d.MeanError(3), want, 1e-9*want, "%+v", d)
	}
	if got := (uci.Data{Name: "year"}).MeanError(0); !math.IsInf(got, 1) {
		t.Errorf("what is not known is %v", got)
	}
}

// The examples by which hyperparameters are chosen have no part in the training, and test examples none in either.
func TestChoosingIsApart(t *testing.T) {
	ctx := context.Background()
	whole, choosing := must.Get(uci.Data{Name: "yacht"}.Load(ctx, 3))(t), must.Get(uci.Data{Name: "yacht", Validation: true}.Load(ctx, 3))(t)
	target := func(d experiment.Data, values []float64) []float64 { // in the data's own units
		own := make([]float64, len(values))
		for i, v := range values {
			own[i] = float64(int(1e6*(v*d.Unit+d.Zero)+0.5)) / 1e6
		}
		slices.Sort(own)
		return own
	}
	all := target(choosing, slices.Concat(choosing.Train.Targets, choosing.Sets[0].Targets))
	if want := target(whole, whole.Train.Targets); !slices.Equal(all, want) {
		t.Error("the examples to train on and to choose by are not the training part of the split")
	}
}

func TestDataThatCannotBe(t *testing.T) {
	for want, err := range map[string]error{
		"there is no UCI data set \"yatch\"": uci.Data{Name: "yatch"}.Check(),
		"there are no splits Splits(7)":      uci.Data{Name: "yacht", Kind: 7}.Check(),
		"there are no holes of naval":        uci.Data{Name: "naval", Kind: uci.Hole}.Check(),
	} {
		must.Err(t, err, want)
	}
}

// The splits are the published ones, standardised by their training part alone. The numbers were computed outside of
// this program, from the data file and the generator that made the published splits.
func TestLoad(t *testing.T) {
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-7 }
	for _, c := range []struct {
		kind      uci.Splits
		split     int
		mean, std float64    // of the training targets
		test      []float64  // the first targets of the test part, in their units
		train     []float64  // of the training part
		input     [6]float64 // the first test input, standardised
		trained   [6]float64 // the first training input
	}{
		{uci.Gal, 3, 10.13801444, 14.765106149, []float64{0.45, 20.91, 12.39}, []float64{1.15, 6, 2.62},
			[6]float64{-1.760327192, 0.050945338, 1.26685952, 0.020964353, 1.260074783, -1.101817846},
			[6]float64{0.059870108, -1.47820343, -0.069829138, -0.44218064, -0.159284462, -0.603932783}},
		{uci.Gal, 4, 10.4966787, 14.910768084, []float64{1.76, 1.94, 1.07}, []float64{4.09, 5.54, 1.65},
			[6]float64{-1.720011872, 0.039358369, 1.232105186, -0.01092775, 1.218642121, -0.371562778},
			[6]float64{0.048231261, -0.089917539, 1.39420119, 1.841955093, -0.165984673, 0.123258806}},
		{uci.Random, 3, 10.592274368, 15.065766567, []float64{0.83, 0.36, 0.7}, []float64{12.86, 1.36, 0.04},
			[6]float64{1.623125525, 0.069677691, 1.212688842, 0.003845512, 1.213728436, -0.886985442},
			[6]float64{-0.002445203, 0.461791652, -1.733932291, 0.039954217, -1.837482631, 0.855532057}},
		{uci.Random, 4, 10.766209386, 15.34733831, []float64{1.99, 2.63, 2.94}, []float64{15.25, 12.4, 20.11},
			[6]float64{0.050572242, 0.026968201, -0.015664729, 2.624449284, -1.845376104, -0.378840468},
			[6]float64{1.528534409, 1.529592972, -0.015664729, 0.582236793, -0.235849376, 0.852835702}},
		{uci.Gap, 4, 10.42297561, 14.793292627, []float64{1.01, 1.43, 2.05}, []float64{0.04, 0.17, 0.36},
			[6]float64{0.052128604, -2.086489818, -1.621773498, -2.004022485, -0.274633204, -0.61675541},
			[6]float64{0.052128604, 1.784874144, -1.621773498, 0.50251247, -1.6738, -1.598773732}},
	} {
		d := must.Get(uci.Data{Name: "yacht", Kind: c.kind}.Load(t.Context(), c.split))(t)
		train, test := d.Train, d.Sets[0]
		if !near(d.Zero, c.mean) || !near(d.Unit, c.std) {
			t.Errorf("%v split %d: targets are scaled by %v and %v, want %v and %v", c.kind, c.split, d.Zero, d.Unit, c.mean, c.std)
		}
		for i := range c.test {
			if got := test.Targets[i]*c.std + c.mean; !near(got, c.test[i]) {
				t.Errorf("%v split %d: test target %d is %v, want %v", c.kind, c.split, i, got, c.test[i])
			}
			if got := train.Targets[i]*c.std + c.mean; !near(got, c.train[i]) {
				t.Errorf("%v split %d: training target %d is %v, want %v", c.kind, c.split, i, got, c.train[i])
			}
		}
		for j := range c.input {
			if got, trained := test.Inputs.(nets.Floats).Values[j], train.Inputs.(nets.Floats).Values[j]; !near(got, c.input[j]) || !near(trained, c.trained[j]) {
				t.Errorf("%v split %d, column %d: test input %v, training input %v, want %v and %v", c.kind, c.split, j, got, trained, c.input[j], c.trained[j])
			}
		}
	}
}

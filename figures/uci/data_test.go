package uci_test

import (
	"context"
	"slices"
	"strings"
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
		{uci.Data{Name: "yacht", Choosing: true}, 20, 222, 0, 55},
		{uci.Data{Name: "yacht", Choosing: true, HeldOut: true}, 20, 178, 44, 55},
		{uci.Data{Name: "protein"}, 5, 41157, 0, 4573},
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

// The examples by which hyperparameters are chosen have no part in the training, and test examples none in either.
func TestChoosingIsApart(t *testing.T) {
	ctx := context.Background()
	whole, choosing := must.Get(uci.Data{Name: "yacht"}.Load(ctx, 3))(t), must.Get(uci.Data{Name: "yacht", Choosing: true}.Load(ctx, 3))(t)
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

// Inputs and targets are standardised by the training part alone.
func TestStandardised(t *testing.T) {
	d := must.Get(uci.Data{Name: "boston"}.Load(context.Background(), 0))(t)
	sum, squares := 0.0, 0.0
	for _, y := range d.Train.Targets {
		sum, squares = sum+y, squares+y*y
	}
	n := float64(d.Train.Len())
	if mean, variance := sum/n, squares/n; mean > 1e-12 || mean < -1e-12 || variance > 1+1e-12 || variance < 1-1e-12 {
		t.Errorf("the training targets have the mean %g and the variance %g", mean, variance)
	}
	if d.Train.Inputs.(nets.Floats).Size() != 13 || !(d.Unit > 0) {
		t.Errorf("inputs of %d features, unit %g", d.Train.Inputs.(nets.Floats).Size(), d.Unit)
	}
}

func TestDataThatCannotBe(t *testing.T) {
	for want, err := range map[string]error{
		"there is no UCI data set \"yatch\"": uci.Data{Name: "yatch"}.Check(),
		"there are no splits Splits(7)":      uci.Data{Name: "yacht", Kind: 7}.Check(),
		"yacht has no split 20; there are 20": func() error {
			_, err := uci.Data{Name: "yacht"}.Load(context.Background(), 20)
			return err
		}(),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}

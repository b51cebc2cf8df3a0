package experiment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"densityuncertainty/datasets"
	"densityuncertainty/dul/likelihood"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
	"densityuncertainty/figures/spec"
	"densityuncertainty/figures/trained"
)

// prepared is a split of a regression, with the one set "test". Inputs, and the targets too if that is asked for, are standardised
// by the means and deviations of the training examples alone; a column that is constant there is only centred. With heldOut, a part
// from 0 to 1 of the training examples, drawn at random with a seed, is held out of training. A missing number is the mean
// of the training examples. It is an error if one of the others has a category that they do not have.
func prepared(set *datasets.Regression, split datasets.Split, heldOut float64, seed uint64, standardise bool) (d Data, err error) {
	trainRows, heldRows := split.Train, []int(nil)
	if heldOut > 0 {
		inner := split.HoldOut(heldOut, seed)
		if err := inner.Check(set.N); err != nil {
			return d, fmt.Errorf("of the %d training rows of %q a part of %g is held out, which %w", len(split.Train), set.Name, heldOut, err)
		}
		trainRows, heldRows = inner.Train, inner.Test
	}
	features, target := datasets.FitScaler(set.X, set.D, trainRows), datasets.Scaler{Mean: []float64{0}, Std: []float64{1}}
	if standardise {
		target = datasets.FitScaler(set.Y, 1, trainRows)
	}
	rows := func(numbers []int) train.Dataset {
		x, y := set.Take(numbers)
		for i, number := range numbers {
			if wrong := set.Columns.Fill(x[i*set.D:(i+1)*set.D], features); err == nil && wrong != nil {
				err = fmt.Errorf("row %d (from 0) of %q: %w", number, set.Name, wrong)
			}
		}
		return train.Dataset{Inputs: nets.Rows(features.Transform(x), set.D), Targets: target.Transform(y)}
	}
	d = Data{Train: rows(trainRows), Sets: []Set{{testSet, rows(split.Test)}}, Unit: target.Std[0], Zero: target.Mean[0], Inputs: &features, Columns: set.Columns}
	if heldRows != nil {
		d.HeldOut = rows(heldRows)
	}
	return d, err
}

// A Table is a data set of your own, such as datasets.ReadCSV reads, on random splits with a tenth of the examples as
// the test part, or on splits of your own. Inputs and targets are standardised by the training part; the numbers of a likelihood
// stay in the unit of the data (likelihood.Rescaler). Its identity is a digest of the numbers.
type Table struct {
	Set *datasets.Regression
	// Count is the number of random splits; 0 means 20.
	Count int
	// Parts are splits of your own, such as by time or by groups, in the place of random ones; datasets.HoleSplits makes
	// some with gaps.
	Parts []datasets.Split
	// Classes, if not 0, says that the last column has labels from 0 to Classes-1, for a classification.
	Classes int
	// RawTargets leaves targets as they are, such as counts for likelihood.Poisson.
	RawTargets bool
	// HeldOut is the part of the training examples, from 0 to 1, that is held out for early stopping.
	HeldOut float64
	// Calibration predicts the held-out part as the set "calibration", for conformal intervals
	// (predict.Prediction.ConformalIntervals), instead of keeping it for early stopping.
	Calibration bool
}

// leastExamples are enough for a training part, a test part and a held-out part.
const leastExamples = 4

// Check says why the table cannot be used.
func (t Table) Check() error {
	if t.Set == nil {
		return errors.New("experiment.Table has no Set; read one with datasets.ReadCSV")
	}
	if err := t.Set.Check(); err != nil {
		return err
	}
	switch {
	case t.Set.N < leastExamples:
		return fmt.Errorf("experiment.Table: set %q has %d examples; the splits need at least %d", t.Set.Name, t.Set.N, leastExamples)
	case t.Count < 0 || t.Classes < 0 || t.Classes == 1:
		return fmt.Errorf("experiment.Table has Count %d and Classes %d; neither may be negative, and there are at least 2 classes", t.Count, t.Classes)
	case t.Parts != nil && t.Count != 0:
		return errors.New("experiment.Table has Parts and a Count; Parts are the splits, so leave Count out")
	case !(t.HeldOut >= 0 && t.HeldOut < 1):
		return fmt.Errorf("experiment.Table has HeldOut %g; it is a part of the training examples, from 0 to below 1", t.HeldOut)
	case t.Calibration && t.HeldOut == 0:
		return errors.New("experiment.Table has Calibration without HeldOut; set HeldOut to the part of the training examples to calibrate by, such as 0.2")
	case t.Classes > 0 && t.RawTargets:
		return errors.New("experiment.Table has Classes and RawTargets; labels are never standardised, so leave RawTargets out")
	}
	for i, split := range t.Parts {
		if err := split.Check(t.Set.N); err != nil {
			return fmt.Errorf("experiment.Table: split %d of Parts %w", i, err)
		}
	}
	for i := 0; t.HeldOut > 0 && i < max(1, len(t.Parts)); i++ { // random splits are equally large
		if err := t.parts(i).HoldOut(t.HeldOut, 0).Check(t.Set.N); err != nil {
			return fmt.Errorf("experiment.Table: with HeldOut %g the training part of split %d %w", t.HeldOut, i, err)
		}
	}
	for i, y := range t.Set.Y {
		if t.Classes > 0 && (y != math.Trunc(y) || y < 0 || y >= float64(t.Classes)) {
			return fmt.Errorf("experiment.Table: the label of example %d is %g; labels are whole numbers from 0 to %d", i, y, t.Classes-1)
		}
	}
	return nil
}

// tableIdentity is what decides the numbers of a Table.
type tableIdentity struct {
	Data                  string // Digest of the numbers
	Classes               int
	RawTargets            bool
	HeldOut               float64
	Calibration           bool
	Examples, FeatureSize int
	Parts                 []datasets.Split
}

// Identity implements Identifier. The names of the set and of its columns are no part of it, nor is Count: how many splits
// there are changes none of them.
func (t Table) Identity() spec.Identity {
	v := tableIdentity{Classes: t.Classes, RawTargets: t.RawTargets, HeldOut: t.HeldOut, Calibration: t.Calibration, Parts: t.Parts}
	if t.Set != nil {
		v.Examples, v.FeatureSize = t.Set.N, t.Set.D
		v.Data = Digest(Set{"training", train.Dataset{Inputs: nets.Rows(t.Set.X, t.Set.D), Targets: t.Set.Y}})
	}
	return spec.Identity{Value: v}
}

// Splits implements Source.
func (t Table) Splits() int {
	if t.Parts != nil {
		return len(t.Parts)
	}
	return cmp.Or(t.Count, 20)
}

// Load implements Source.
func (t Table) Load(_ context.Context, split int) (Data, error) {
	if err := t.Check(); err != nil {
		return Data{}, err
	}
	if split < 0 || split >= t.Splits() {
		return Data{}, fmt.Errorf("experiment.Table has no split %d; there are %d", split, t.Splits())
	}
	d, err := prepared(t.Set, t.parts(split), t.HeldOut, uint64(split), t.Classes == 0 && !t.RawTargets)
	if err != nil {
		return d, fmt.Errorf("experiment.Table, split %d: %w", split, err)
	}
	if t.Classes > 0 {
		for _, part := range []*train.Dataset{&d.Train, &d.HeldOut, &d.Sets[0].Dataset} {
			for _, label := range part.Targets {
				part.Labels = append(part.Labels, int(label))
			}
			part.Targets = nil
		}
	}
	if t.Calibration {
		d.Sets, d.HeldOut = append(d.Sets, Set{"calibration", d.HeldOut}), train.Dataset{}
	}
	return d, nil
}

// parts are the rows of the training and the test part of a split.
func (t Table) parts(split int) datasets.Split {
	if t.Parts != nil {
		return t.Parts[split]
	}
	return datasets.RandomSplits(t.Set.N, split+1)[split]
}

// TestTrain returns the number of test examples for each training example of a split. It corrects tests of differences
// over overlapping splits.
func (t Table) TestTrain(split int) float64 {
	parts := t.parts(split)
	trained := parts.Train
	if t.HeldOut > 0 {
		trained = parts.HoldOut(t.HeldOut, uint64(split)).Train
	}
	return float64(len(parts.Test)) / float64(len(trained))
}

// MeanError returns the root mean squared error on the test part of a split of predicting the mean training target, in
// the unit of the metric "rmse". A Source of your own returns +Inf if it does not know it.
func (t Table) MeanError(split int) float64 { return t.Set.MeanError(t.parts(split)) }

// Arrays are data of your own of any shape, such as sequences [N, positions, features], on a single split. They are used
// as they are, so standardise them first. Their identity is a digest of the numbers.
type Arrays Data

// arraysIdentity is what decides the numbers of Arrays.
type arraysIdentity struct {
	Data       string // Digest of the numbers and of the names of sets
	Examples   int
	Unit, Zero float64
}

// Identity implements Identifier.
func (a Arrays) Identity() spec.Identity {
	v := arraysIdentity{Unit: a.Unit, Zero: a.Zero}
	if a.Train.Inputs != nil {
		v.Examples = a.Train.Len()
		v.Data = Digest(Data(a).all()...)
	}
	return spec.Identity{Value: v}
}

// Splits implements Source.
func (Arrays) Splits() int { return 1 }

// Load implements Source.
func (a Arrays) Load(context.Context, int) (Data, error) { return Data(a), nil }

// all are the examples to train on, under the name "training", those held out, and the sets.
func (d Data) all() []Set {
	return append([]Set{{"training", d.Train}, {"held-out", d.HeldOut}}, d.Sets...)
}

// toPredict is the number of examples of all sets.
func (d Data) toPredict() (n int) {
	for _, set := range d.Sets {
		n += set.Len()
	}
	return n
}

// check says what is wrong with the data of a split.
func (d Data) check(l likelihood.Likelihood) error {
	if len(d.Sets) == 0 {
		return errors.New("there are no Sets to predict")
	}
	if !(d.Unit > 0) || !finite(d.Unit) || !finite(d.Zero) {
		return fmt.Errorf("the data have the Unit %g and the Zero %g; both must be finite, and the Unit positive", d.Unit, d.Zero)
	}
	for i, set := range d.all() {
		if i == 1 && set.Inputs == nil { // no examples are held out
			continue
		}
		err := set.Check(l, d.Train)
		if err == nil && i == 0 && set.Targets == nil && set.Labels == nil {
			err = errors.New("there are neither Targets nor Labels")
		}
		if err != nil {
			return fmt.Errorf("the %s data: %w", set.Name, err)
		}
	}
	for i, set := range d.Sets {
		if set.Name == "" || slices.ContainsFunc(d.Sets[:i], func(other Set) bool { return other.Name == set.Name }) {
			return fmt.Errorf("set %d is called %q; give each set a name of its own", i, set.Name)
		}
	}
	return d.scale().Check()
}

// scale describes the data in the file of a trained network.
func (d Data) scale() trained.Scale {
	s := trained.Scale{Inputs: d.Inputs, Columns: d.Columns, Unit: d.Unit, Zero: d.Zero}
	if x, is := d.Train.Inputs.(nets.Floats); is {
		s.Shape = x.Shape
	}
	return s
}

// load loads the data of an experiment, whose Unit is then never 0, and checks them.
func (e Experiment) load(ctx context.Context) (d Data, err error) {
	defer recovered(&err)
	d, err = e.Task.Data.Load(ctx, e.Split)
	d.noUnit, d.Unit = d.Unit == 0, cmp.Or(d.Unit, 1)
	if err != nil {
		return d, err
	}
	return e.checked(d)
}

// checked are the data with the likelihood for them, or an error that says what is wrong with them.
func (e Experiment) checked(d Data) (_ Data, err error) {
	if err = d.check(e.Task.Likelihood); err == nil {
		d.likelihood, err = likelihood.Rescaled(e.Task.Likelihood, d.Unit, d.Zero)
	}
	if err != nil {
		return d, err
	}
	targets := d.Train.Targets
	if _, counts := e.Task.Likelihood.(likelihood.TargetChecker); !counts && len(targets) > 1 && slices.Min(targets) == slices.Max(targets) {
		return d, fmt.Errorf("all %d training targets of the split are %g, so that there is nothing to learn; leave the split out, or give other data", len(targets), targets[0])
	}
	if labels := d.Train.Labels; len(labels) > 1 && slices.Min(labels) == slices.Max(labels) {
		return d, fmt.Errorf("all %d training labels of the split are %d, so that there is nothing to learn; leave the split out, or give other data", len(labels), labels[0])
	}
	if p, is := e.Method.Layers.(interface{ LeastExamples() int }); is && p.LeastExamples() > d.Train.Len() {
		return d, fmt.Errorf("layers of type %T need %d training examples, for their inducing points, and there are %d", p, p.LeastExamples(), d.Train.Len())
	}
	if e.Recipe.EarlyStopping && d.HeldOut.Inputs == nil {
		return d, errors.New("Recipe.EarlyStopping needs held-out examples, and the data have none; set the HeldOut of the source")
	}
	return d, nil
}

// ownData says whether the data are the user's, and not a data set of this module.
func (e Experiment) ownData() bool {
	_, table := e.Task.Data.(Table)
	_, arrays := e.Task.Data.(Arrays)
	return table || arrays || spec.IsCustom(e.Task.Data)
}

// checkSource says what is wrong with a source, as far as it knows without reading data.
func checkSource(data Source) error {
	if data == nil {
		return errors.New("Task.Data is nil; give a source, such as experiment.Table or experiment.Arrays")
	}
	var err error
	if c, has := data.(likelihood.Checker); has {
		err = c.Check()
	}
	if err == nil && data.Splits() < 0 {
		err = fmt.Errorf("Task.Data, a %T, has %d splits", data, data.Splits())
	}
	return err
}

// Digest identifies sets of examples by all their numbers: two lists of sets have equal digests if and only if they
// have the same inputs, targets, labels and names. It is for the Identity of a Source of your own.
func Digest(sets ...Set) string {
	h := sha256.New()
	for _, set := range sets {
		spec.WriteData(h, set.Name, set.Dataset)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

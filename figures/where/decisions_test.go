package where

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
	"densityuncertainty/dul/train"
	"densityuncertainty/environment/must"
	"densityuncertainty/figures/experiment"
	"densityuncertainty/figures/methods"
	"densityuncertainty/figures/report"
	"densityuncertainty/figures/tables"
	"densityuncertainty/figures/uci"
)

// inputAt is input number i of a set.
func inputAt(d train.Dataset, i int) []float64 {
	x := d.Inputs.(nets.Floats)
	return x.Values[i*x.Size() : (i+1)*x.Size()]
}

// says are predictions of a set by functions.
func says(set experiment.Set, functions ...[]float64) experiment.Prediction {
	var noise [][]float64
	for range functions {
		noise = append(noise, slices.Repeat([]float64{1}, set.Len()))
	}
	return experiment.Prediction{Set: set.Name, Targets: set.Targets, Prediction: predict.Prediction{Mixture: predict.Mixture{Mean: functions, NoiseStd: noise}, Width: 1}}
}

// Acquisition adds the examples of the pool with the largest variance, and each only once; random choice adds others. The
// learning curve has the errors of the test set in the data's own units.
func TestAcquisition(t *testing.T) {
	const unit = 3
	d := must.Get(Pool{uci.Data{Name: "yacht"}, 20}.Load(t.Context(), 0))(t)
	d.Unit = unit
	pool := d.Sets[1]
	wide := make([]float64, pool.Len()) // half the distance of two functions at each example of the pool
	for i := range wide {
		wide[i] = float64(i*7919%pool.Len()) / 100
	}
	byWidth := make([]int, pool.Len())
	for i := range byWidth {
		byWidth[i] = i
	}
	slices.SortFunc(byWidth, func(i, j int) int { return cmp.Compare(wide[j], wide[i]) })
	for _, random := range []bool{false, true} {
		a := Acquisition{Trainings: 3, Add: 10, Random: random}
		var last train.Dataset
		found := must.Get(a.choose(d, rand.New(rand.NewPCG(1, 1)), func(round int, d experiment.Data) ([]experiment.Prediction, error) {
			last = d.Train
			off := slices.Clone(d.Sets[0].Targets)
			for i := range off {
				off[i] += float64(3 - round)
			}
			narrow := make([]float64, len(wide))
			for i, w := range wide {
				narrow[i] = -w
			}
			return []experiment.Prediction{says(d.Sets[0], off), says(pool, wide, narrow)}, nil
		}))(t)
		if last.Len() != 40 {
			t.Fatalf("the last training is on %d examples", last.Len())
		}
		inOrder := 0
		for k, i := range byWidth[:20] {
			if slices.Equal(inputAt(last, 20+k), inputAt(pool.Dataset, i)) && last.Targets[20+k] == pool.Targets[i] {
				inOrder++
			}
		}
		if !random && inOrder != 20 || random && inOrder > 5 {
			t.Errorf("random %t: %d of 20 examples are those of the largest variance", random, inOrder)
		}
		for name, want := range map[string]float64{"rmse_20": 9, "rmse_30": 6, "rmse_40": 3, "rmse_area": 6, "nll_40": 0.5 + 0.5*math.Log(2*math.Pi) + math.Log(unit)} {
			must.Near(t, found[name], want, 1e-9, "%s", name)
		}
	}
}

// The first examples and the pool are the training part, in an order that each split has for itself.
func TestPool(t *testing.T) {
	source := Pool{uci.Data{Name: "yacht"}, 20}
	d, whole := must.Get(source.Load(t.Context(), 3))(t), must.Get(source.Data.Load(t.Context(), 3))(t)
	both := slices.Sorted(slices.Values(slices.Concat(d.Train.Targets, d.Sets[1].Targets)))
	if d.Train.Len() != 20 || !slices.Equal(both, slices.Sorted(slices.Values(whole.Train.Targets))) || d.Sets[0].Len() != whole.Sets[0].Len() {
		t.Errorf("%d first examples, %d in the pool, of %d", d.Train.Len(), d.Sets[1].Len(), whole.Train.Len())
	}
	source.First = whole.Train.Len()
	must.GetErr(source.Load(t.Context(), 3))(t) // a pool of nothing is no error
}

// Expected rewards are standardised, and the first rewards are around those of their actions. Each split is another bandit.
func TestBandits(t *testing.T) {
	source := Bandits{Actions: 50, Features: 10, First: 400, Noise: 0.5}
	d, other := must.Get(source.Load(t.Context(), 0))(t), must.Get(source.Load(t.Context(), 1))(t)
	actions := d.Sets[0]
	mean, squares := 0.0, 0.0
	for _, v := range actions.Targets {
		mean, squares = mean+v/50, squares+v*v/50
	}
	must.Near(t, mean, 0, 1e-12, "the mean of the expected rewards")
	must.Near(t, squares, 1, 1e-12, "the mean square of the expected rewards")
	if actions.Targets[0] == other.Sets[0].Targets[0] {
		t.Error("two splits have the same rewards")
	}
	sum, seen := 0.0, map[int]bool{}
	for k := range d.Train.Len() {
		i := 0
		for !slices.Equal(inputAt(actions.Dataset, i), inputAt(d.Train, k)) {
			i++
		}
		seen[i] = true
		sum += math.Pow((d.Train.Targets[k]-actions.Targets[i])/source.Noise, 2)
	}
	const n = 400
	must.Z(t, (sum-n)/math.Sqrt(2*n), "the variance of the noise")
	if len(seen) < 45 {
		t.Errorf("%d of 50 actions were taken", len(seen))
	}
}

// Thompson sampling follows one function in each round: one that knows the expected rewards has no regret, and of two
// functions each is followed in half of the rounds. Random choice has the regret of the mean action.
func TestThompson(t *testing.T) {
	d := must.Get(Bandits{Actions: 50, Features: 10, First: 20, Noise: 1}.Load(t.Context(), 0))(t)
	actions, best := d.Sets[0], slices.Max(d.Sets[0].Targets)
	const rounds = 2000
	explore := 0.0
	regret := func(random bool, functions ...[]float64) float64 {
		thompson := Thompson{Trainings: 4, Batch: rounds / 4, Noise: 1, Random: random, Explore: explore}
		found := must.Get(thompson.choose(d, rand.New(rand.NewPCG(2, 2)), func(round int, d experiment.Data) ([]experiment.Prediction, error) {
			if want := 20 + round*rounds/4; d.Train.Len() != want {
				t.Fatalf("in round %d there are %d examples, want %d", round, d.Train.Len(), want)
			}
			return []experiment.Prediction{says(actions, functions...)}, nil
		}))(t)
		return found["regret_2000"]
	}
	if got := regret(false, actions.Targets); got != 0 {
		t.Errorf("who knows the rewards has the regret %v", got)
	}
	const other = 7 // the only action that the second function likes
	likes := make([]float64, actions.Len())
	likes[other] = 1
	gap := best - actions.Targets[other]
	must.Z(t, (regret(false, actions.Targets, likes)-rounds*gap/2)/(gap*math.Sqrt(rounds)/2), "two functions")
	must.Z(t, (regret(true)-rounds*best)/math.Sqrt(rounds), "random choice") // expected rewards have the mean 0 and variance 1
	const share = 0.25
	explore = share // an action at random costs best on average, with the variance 1 + best^2 of a round that does or does not
	must.Z(t, (regret(false, actions.Targets)-rounds*share*best)/math.Sqrt(rounds*(share+share*(1-share)*best*best)), "a quarter at random")
	closed := says(actions, actions.Targets)
	closed.Std = closed.NoiseStd
	must.GetErr((Thompson{Trainings: 1, Batch: 1}).choose(d, rand.New(rand.NewPCG(2, 2)), func(int, experiment.Data) ([]experiment.Prediction, error) {
		return []experiment.Prediction{closed}, nil
	}))(t) // a prediction without draws is no error
}

// A small decision runs on the engine. One that diverges says so, and has no numbers.
func TestDecisionOnEngine(t *testing.T) {
	p := bandit()
	p.decide = func(a agent) experiment.Program {
		return Thompson{Trainings: 2, Batch: 3, Noise: 1, Learner: a.Program}
	}
	later := banditAgents()[16:]
	list := slices.Concat(p.runs(agents()[0]).OnSplits(0, 1), p.runs(later[0]).OnSplits(0), p.runs(later[1]).OnSplits(0)).Change(func(e *experiment.Experiment) {
		e.Recipe.Epochs, e.Recipe.PretrainEpochs = 5, min(3, e.Recipe.PretrainEpochs)
	})
	for _, r := range must.Get(experiment.Run(t.Context(), list...))(t) {
		if m := r.Metrics; m["regret_6"] <= 0 || m["regret_6"] < m["regret_3"] || r.Batched != 1 {
			t.Errorf("the regret is %v, of %d experiments together", m, r.Batched)
		}
	}
	wild := list[:1].Change(func(e *experiment.Experiment) { e.Recipe.Schedule = train.Constant{Start: 1e30} })
	if r := must.Get(experiment.Run(t.Context(), wild...))(t)[0]; !r.Diverged || len(r.Metrics) > 0 || !strings.Contains(r.Reason, "round 0: ") {
		t.Errorf("a wild training has the numbers %v: %s", r.Metrics, r.Reason)
	}
}

// An agent with twice density's regret on every seed has the ratio 2. Where seeds are missing there is neither ratio nor test. The
// agents of question 14 are compared on its seeds alone.
func TestBanditTable(t *testing.T) {
	var list []experiment.Result
	for k, a := range append(banditAgents()[:3], independent(methods.Density), independent(methods.DensityMean)) {
		for _, e := range bandit().runs(a)[decisionSeeds+k/2:] {
			list = append(list, experiment.Result{ID: e.ID(), Metrics: map[string]float64{"regret_500": float64((1 + k) * (100 + e.Split%7))}})
		}
	}
	table := must.Get(banditTable(tables.Of(list)))(t)
	for k, want := range []string{"1", "2.00 [2.00, 2.00]", ""} {
		if got := table.Rows[k].Cells; got[1].Text != want || (got[0].Verdict == report.Worse) != (k == 1) {
			t.Errorf("row %d: %+v", k, got)
		}
	}
	for k, want := range []string{"1", "4.00 [4.00, 4.00]", "5.00 [5.00, 5.00]", "1", "1.25 [1.25, 1.25]"} {
		row := table.Rows[len(table.Rows)-5+k]
		if got := row.Cells; got[1].Text != want || (got[0].Verdict == report.Worse) != (want != "1") {
			t.Errorf("question 14, %s: %+v", row.Name, got)
		}
	}
	table = must.Get(banditTable(tables.Of(list[:len(list)-1])))(t)
	for _, row := range table.Rows[len(table.Rows)-5:] {
		if row.Cells[0].Verdict != "" {
			t.Errorf("without one run of question 14, %s: %+v", row.Name, row.Cells[0])
		}
	}
	if len(must.Get(banditPicture(tables.Of(list)))(t).Rows) != len(table.Rows)-5 {
		t.Error("the picture is not of question 6 alone")
	}
}

// What cannot be is refused before anything is trained.
func TestDecisionsRefuse(t *testing.T) {
	for _, d := range []experiment.Program{Acquisition{Trainings: 1, Add: 10}, Acquisition{Trainings: 5}, Acquisition{Trainings: 2, Add: 1, Learner: methods.SWAGSampler{}}, Thompson{Batch: 1}, Thompson{Trainings: 1, Batch: 1, Noise: math.NaN()}, Thompson{Trainings: 1, Batch: 1, Explore: 1}, Thompson{Trainings: 1, Batch: 1, Learner: methods.SWAGSampler{}}} {
		e := bandit().runs(agents()[0])[0]
		e.Method.Program = d
		if e.Check() == nil {
			t.Errorf("%T %+v is no error", d, d)
		}
	}
	d := must.Get(Pool{uci.Data{Name: "yacht"}, 20}.Load(context.Background(), 0))(t)
	must.GetErr((Acquisition{Trainings: 100, Add: 10}).choose(d, rand.New(rand.NewPCG(1, 1)), nil))(t) // more examples than the pool has are no error
	if got := observed(d.Train, d.Train, 0, 1); got.Len() != 21 || d.Train.Len() != 20 || got.Inputs.(nets.Floats).Len() != 21 {
		t.Errorf("%d examples, before %d", got.Len(), d.Train.Len())
	}
}

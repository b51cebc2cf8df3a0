package train_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/dul"
	"densityuncertainty/dul/layertest/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/train"
)

// laplaceWeight is the weight of an example with these logits by its formula.
func laplaceWeight(logits []float64) float64 {
	sum, weight := 0.0, 0.0
	for _, z := range logits {
		sum += math.Exp(z)
	}
	for _, z := range logits {
		p := math.Exp(z) / sum
		weight += p * (1 - p) / 2
	}
	return weight
}

// A step of gradient descent on the generative objective of one layer, from Sigma =
// I, is the weighted mean of the examples' gradients, which are known there; the
// classifier, of which the weights are functions, does not move.
func TestStepOnWeightedEnergies(t *testing.T) {
	const rate = 0.1
	const lower, logVariance = "/model/network/output/energy/lower", "/model/network/output/energy/log_variance"
	for _, weighted := range []bool{false, true} {
		t.Run(map[bool]string{false: "all alike", true: "weighted"}[weighted], func(t *testing.T) {
			c := named(t, "points")
			c.network = func(d dul.Density) nets.Network { return nets.MLP{Layers: d} }
			c.Order, c.WeightEnergies, c.BatchSize, c.Schedule = ordering(inOrder), weighted, trialN, train.Constant{Start: rate}
			c.Groups, c.PretrainGroups = []train.Group{{Roles: train.AllRoles(), Optimizer: train.SGD{}}}, nil
			c.PretrainEpochs, c.Epochs = 0, 0
			start := c.model(t, dtypes.Float64)
			sample(t, start, c.data[0].Inputs, 1) // makes the parameters
			c.PretrainEpochs = 1
			m := c.model(t, dtypes.Float64)
			c.fit(t, m)

			logits, _, _ := firstBatch(t, c)
			want := map[string]fixtures.Array{lower: fixtures.Zeros(2, 2), logVariance: fixtures.Zeros(1, 2)}
			x := c.data[0].Inputs.(nets.Floats).Values
			for i := range trialN {
				share, h := rate/trialN, x[2*i:2*i+2]
				if weighted {
					share *= laplaceWeight(logits[0][2*i : 2*i+2])
				}
				want[lower].Values[2] -= share * h[0] * h[1]
				for d := range h {
					want[logVariance].Values[d] += share * (h[d]*h[d] - 1) / 2
				}
			}
			before := parametersOf(t, start)
			for path, got := range parametersOf(t, m) {
				if end, moves := want[path]; moves {
					fixtures.Compare(t, path, got, end, 1e-12)
				} else {
					fixtures.Compare(t, path, got, before[path], 0)
				}
			}
		})
	}
}

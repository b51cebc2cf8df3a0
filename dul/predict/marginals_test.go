package predict_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"densityuncertainty/baselines"
	"densityuncertainty/dul/internal/fixtures"
	"densityuncertainty/dul/nets"
	"densityuncertainty/dul/predict"
)

// sparse is an untrained regression whose head is DUE, with replicas if there
// are several seeds.
func sparse(t *testing.T, seeds ...uint64) *nets.Regression {
	t.Helper()
	head := baselines.DUE{
		Start:      []baselines.Inducing{{Points: []float64{0, 1, 2, 2, 1, 0}, LengthScale: 1}},
		Likelihood: baselines.Gaussian,
	}
	network := nets.ResidualMLP{Layers: baselines.Deterministic{}, Head: head, Width: 2, Depth: 1}
	r, err := nets.NewRegression(fixtures.Backend(t), network, seeds, len(seeds) > 1, dtypes.Float64)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Marginals and features of replicas are those of each alone, also where one has
// fewer inputs; before training f has the prior's moments.
func TestGaussian(t *testing.T) {
	ctx := context.Background()
	x := [][]float64{{1, -1, 0.5}, {2, 3}}
	headless := nets.ResidualMLP{Layers: baselines.Deterministic{}, Head: baselines.Headless{}, Width: 2, Depth: 1}
	joint := sparse(t, 1, 2)
	together, err := predict.Gaussian(ctx, joint, x, 1)
	if err != nil {
		t.Fatal(err)
	}
	features, width, err := predict.Features(ctx, joint, headless, x, 1)
	if err != nil || width != 2 {
		t.Fatalf("features of width %d, error %v", width, err)
	}
	for r, seed := range []uint64{1, 2} {
		single := sparse(t, seed)
		alone, err := predict.Gaussian(ctx, single, x[r:r+1], 1)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(together[r].Mean, alone[0].Mean) || len(alone[0].Std) != len(x[r]) || alone[0].NoiseStd != 1 {
			t.Errorf("replica %d: %+v together, %+v alone", r, together[r], alone[0])
		}
		for i, std := range alone[0].Std {
			// q(v) is the prior, so that the variance is k(h, h) = log 2 but for jitter.
			if math.Abs(std*std-math.Ln2) > 1e-5 || math.Abs(std-together[r].Std[i]) > 1e-12 {
				t.Errorf("replica %d, input %d: std %g, together %g", r, i, std, together[r].Std[i])
			}
		}
		own, _, err := predict.Features(ctx, single, headless, x[r:r+1], 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range own[0] {
			if len(own[0]) != len(features[r]) || math.Abs(features[r][i]-want) > 1e-12 {
				t.Fatalf("replica %d: features %v together, %v alone", r, features[r], own[0])
			}
		}
	}

	plain := sparse(t, 1)
	plain.Network = nets.MLP{Layers: baselines.Deterministic{}}
	if _, err := predict.Gaussian(ctx, plain, x[:1], 1); err == nil || !strings.Contains(err.Error(), "no moments") {
		t.Errorf("a network without moments: %v", err)
	}
	if _, err := predict.Gaussian(ctx, joint, x[:1], 1); err == nil {
		t.Error("no error for one set of inputs of two replicas")
	}
	if _, _, err := predict.Features(ctx, joint, headless, x[:1], 1); err == nil {
		t.Error("no error for features of one set of inputs of two replicas")
	}
	if _, _, err := predict.ImageFeatures(ctx, classifier(t, baselines.Deterministic{}), nil, photos(2), 0); err == nil {
		t.Error("no error for batches of 0 images")
	}
}

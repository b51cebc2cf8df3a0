package metrics

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"densityuncertainty/environment/must"
)

// Functions a + b x with a from N(0, 1/4) and b from N(0, 1) have joint predictions in closed form: Gaussians of
// covariance 1/4 + x x' and the noise. The mean likelihood of M draws is within z standard errors.
func TestJointNLLOfLines(t *testing.T) {
	const draws, noise = 20000, 0.5
	x, y := []float64{-1, 0.3, 0.3, 2}, []float64{0.4, 0.2, -0.5, 1}
	random := rand.New(rand.NewPCG(1, 1))
	mean, variance := make([][]float64, draws), make([][]float64, draws)
	for m := range mean {
		a, b := random.NormFloat64()/2, random.NormFloat64()
		for _, at := range x {
			mean[m], variance[m] = append(mean[m], a+b*at), append(variance[m], noise*noise)
		}
	}
	for _, group := range [][]int{{0}, {0, 3}, {1, 2}, {0, 1, 2, 3}, {3, 3, 0}} {
		n := len(group)
		covariance, targets := mat.NewSymDense(n, nil), make([]float64, n)
		for i, a := range group {
			targets[i] = y[a]
			for j, b := range group {
				covariance.SetSym(i, j, 0.25+x[a]*x[b])
			}
			covariance.SetSym(i, i, covariance.At(i, i)+noise*noise)
		}
		root, solved := &mat.Cholesky{}, &mat.VecDense{}
		if !root.Factorize(covariance) {
			t.Fatal("the covariance has no root")
		}
		must.Do(t, root.SolveVecTo(solved, mat.NewVecDense(n, targets)))
		distance := mat.Dot(solved, mat.NewVecDense(n, targets))
		want := math.Exp(-0.5 * (float64(n)*math.Log(2*math.Pi) + root.LogDet() + distance))
		// The draws' own likelihoods have the standard error.
		second := 0.0
		for m := range mean {
			l := 0.0
			for _, i := range group {
				l += logNormal(y[i], mean[m][i], variance[m][i])
			}
			second += math.Exp(2*l) / draws
		}
		got := math.Exp(-float64(n) * JointNLL(y, mean, variance, [][]int{group}, 1))
		if z := (got - want) / math.Sqrt((second-got*got)/draws); !(math.Abs(z) < 4) {
			t.Errorf("group %v: likelihood %v, want %v, z-score %.2f", group, got, want, z)
		}
	}
}

// Groups of one target have the marginal likelihood, and so has a single function. Groups count alike, and the unit is the
// target's.
func TestJointNLLOfMarginals(t *testing.T) {
	y := []float64{0.3, -1, 2}
	mean, variance := [][]float64{{0, -1, 1}, {1, 0.5, 2}}, [][]float64{{1, 2, 3}, {0.5, 1, 1}}
	marginal := MonteCarloNLL(y, mean, variance, 3)
	if got := JointNLL(y, mean, variance, [][]int{{0}, {1}, {2}}, 3); math.Abs(got-marginal) > 1e-12 {
		t.Errorf("groups of one target: %v, want %v", got, marginal)
	}
	single := MonteCarloNLL(y, mean[:1], variance[:1], 3)
	if got := JointNLL(y, mean[:1], variance[:1], [][]int{{2, 0, 1}}, 3); math.Abs(got-single) > 1e-12 {
		t.Errorf("a single function: %v, want %v", got, single)
	}
	a, b := JointNLL(y, mean, variance, [][]int{{0, 1}}, 1), JointNLL(y, mean, variance, [][]int{{2}}, 1)
	if got := JointNLL(y, mean, variance, [][]int{{0, 1}, {2}}, 1); math.Abs(got-(a+b)/2) > 1e-12 {
		t.Errorf("two groups: %v, want %v", got, (a+b)/2)
	}
}

// A dyad has two anchors, all pairs alike, and its examples are either, alike.
func TestDyads(t *testing.T) {
	const n, size, count = 3, 5, 6000
	groups := Dyads(n, size, count, 1)
	pairs, first := map[[2]int]int{}, 0
	for _, g := range groups {
		low, high := slices.Min(g), slices.Max(g)
		for _, i := range g {
			if i != low && i != high {
				t.Fatalf("%v has more than two anchors", g)
			}
			if i == low {
				first++
			}
		}
		if len(g) != size {
			t.Fatalf("%v has %d examples", g, len(g))
		}
		pairs[[2]int{low, high}]++
	}
	// Of the groups, 1 in 2^(size-1) has one anchor alone, and the others are of three pairs.
	for _, pair := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
		const p = (1 - 1./16) / 3
		if z := (float64(pairs[pair]) - count*p) / math.Sqrt(count*p*(1-p)); !(math.Abs(z) < 4) {
			t.Errorf("pair %v in %d groups, z-score %.2f", pair, pairs[pair], z)
		}
	}
	// Each example of a group with both is its lower anchor with probability 1/2, of the others always.
	same := 0
	for i := range n {
		same += pairs[[2]int{i, i}]
	}
	both := float64(count-same) * size
	if z := (float64(first-same*size) - both/2) / math.Sqrt(both/4); !(math.Abs(z) < 4) {
		t.Errorf("%d of %v examples are the lower anchor, z-score %.2f", first-same*size, both, z)
	}
	if again := Dyads(n, size, count, 1); !slices.EqualFunc(groups, again, slices.Equal) {
		t.Error("the same seed gives other dyads")
	}
}

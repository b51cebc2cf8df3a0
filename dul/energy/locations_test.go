package energy_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/energy"
	"densityuncertainty/dul/layertest/fixtures"
)

// The log-likelihood is that of Gaussians with gonum's determinants. In prediction the energy lacks the stored information, and in training that of the
// batch, which is the mean of log p(component | h) / p(component).
func TestLocationMixture(t *testing.T) {
	const n, d, k = 6, 2, 3
	rng := rand.New(rand.NewPCG(31, 31))
	h, centres, logits, logVariance := fixtures.Random(rng, n, d), fixtures.Random(rng, k, d), fixtures.Random(rng, 1, k), fixtures.Random(rng, 1, d)
	lower := fixtures.Matrix(d, d, 0, 0, 0.7, 0)
	l, precision := mat.NewDense(d, d, []float64{1, 0, 0.7, 1}), mat.NewSymDense(d, nil)
	for i := range d {
		precision.SymRankOne(precision, math.Exp(-logVariance.Values[i]), l.ColView(i))
	}
	total := 0.0
	for _, v := range logits.Values {
		total += math.Exp(v)
	}
	u, ll, information := fixtures.Zeros(n, 1), fixtures.Zeros(n, 1), 0.0
	for i := range n {
		p, joint := make([]float64, k), 0.0
		for c := range k {
			off := mat.NewVecDense(d, nil)
			off.SubVec(mat.NewVecDense(d, h.Values[i*d:(i+1)*d]), mat.NewVecDense(d, centres.Values[c*d:(c+1)*d]))
			p[c] = math.Exp(logits.Values[c]) / total * math.Sqrt(mat.Det(precision)) / math.Pow(2*math.Pi, d/2.) * math.Exp(-mat.Inner(off, precision, off)/2)
			joint += p[c]
		}
		ll.Values[i] = math.Log(joint)
		u.Values[i] = -ll.Values[i] - 0.5*(d*math.Log(2*math.Pi)+logVariance.Values[0]+logVariance.Values[1])
		for c := range k {
			r := p[c] / joint
			information += r * math.Log(r*total/math.Exp(logits.Values[c])) / n
		}
	}
	const stored = 0.2
	for _, training := range []bool{false, true} {
		less := map[bool]float64{false: stored, true: information}[training]
		out := fixtures.Evaluate(t, dtypes.Float64, fixtures.Values{
			"h": h, "/energy/lower": lower, "/energy/log_variance": logVariance, "/energy/centres": centres, "/energy/logits": logits, "/energy/information": fixtures.Matrix(1, 1, stored),
		}, nil, func(s *model.Scope, in fixtures.Nodes) []*graph.Node {
			s.Store().SetTraining(in["h"].Graph(), training)
			terms := energy.LocationMixture{Components: k}.Dense(s.In("energy"), in["h"])
			return []*graph.Node{terms.Energy, terms.LogLikelihood}
		})
		fixtures.Compare(t, "energy", out[0], u.Map(func(v float64) float64 { return max(0, v-less) }), 1e-12)
		fixtures.Compare(t, "log-likelihood", out[1], ll, 1e-12)
	}
}

package baselines

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"densityuncertainty/dul/metrics"
	"densityuncertainty/dul/params"
)

// Laplace is Laplace's approximation of the posterior of a trained network's last layer (Daxberger et al. 2021, "Laplace Redux").
// The other layers stay as they are. phi(x) is the input of the last layer and a 1 for its bias, D numbers, and w its trained
// weights, [D, K]. The posterior of all weights, the outputs of one input side by side, is
//
//	N(w, P^-1),   P = H + tau I,
//	H = sum_i phi_i^T phi_i / sigma^2                               of a regression with K = 1,
//	H = sum_i (phi_i^T phi_i) (x) (diag(p_i) - p_i p_i^T)           of K classes with p_i = softmax(phi_i w),
//
// the full Hessian of the negative log likelihood of all training examples. With the same weights, sigma and tau laplace-torch 0.3
// has the same variances and probabilities, to 2e-15 (recorded.py --peer); its own tau is 1.
//
// It takes memory for (D K)^2 numbers, and N K (D K)^2 + (D K)^3 operations: for 50,000 examples with 64 features about 2e11 with 10
// classes, and 2e14 with 100.
type Laplace struct {
	// PriorPrecision is tau. 0 takes the tau with the largest marginal likelihood, given w:
	//
	//	log p(data | tau) = log p(data | w) - tau/2 |w|^2 + D K/2 log tau - 1/2 log det P.
	//
	// Training with the weight decay d of train.SGD and N examples has tau = d N.
	PriorPrecision float64
}

// A LastLayer is a posterior of a last layer, which Laplace makes.
type LastLayer struct {
	PriorPrecision float64 // tau
	// LogMarginal is log p(data | tau) without log p(data | w), which tau does not change.
	LogMarginal float64
	width       int        // of the features, D - 1
	weights     *mat.Dense // [D, K]
	root        *mat.Dense // R with R R^T = P^-1, [D K, D K], the outputs of one feature side by side
}

// Regression returns the posterior of a layer with one output, given the training features, [N*width] row-major, its
// weights, the bias last, [width+1], and the variance sigma^2 of the observation noise, in the unit of the training targets
// squared. nets.Headless returns such features. It is an error if lengths do not
// match, if a number is NaN or infinite, if sigma^2 is not positive, or if PriorPrecision is 0 and no tau is the most
// likely, for example because all weights are 0.
func (l Laplace) Regression(features []float64, width int, weights []float64, noiseVariance float64) (*LastLayer, error) {
	if !(noiseVariance > 0) || math.IsInf(noiseVariance, 1) {
		return nil, fmt.Errorf("baselines.Laplace: the noise variance is %g; it must be positive: has the training diverged?", noiseVariance)
	}
	return l.posterior(features, width, weights, 1, func([]float64) (scales, directions []float64) { return []float64{1 / noiseVariance}, []float64{1} })
}

// Classification returns the posterior of a layer with a logit for each class, given the training features, [N*width]
// row-major, and its weights, the biases in the last row, [(width+1)*classes] row-major. Errors are as in Regression.
func (l Laplace) Classification(features []float64, width int, weights []float64, classes int) (*LastLayer, error) {
	return l.posterior(features, width, weights, classes, func(logits []float64) (scales, directions []float64) {
		// diag(p) - p p^T = sum_k p_k (e_k - p) (e_k - p)^T
		p := metrics.Softmax(logits, classes, 1)
		for k := range p {
			for _, q := range p {
				directions = append(directions, -q)
			}
			directions[k*classes+k]++
		}
		return p, directions
	})
}

// posterior is that of K outputs, by which the Hessian of an example's negative log likelihood is sum_j scale_j direction_j^T
// direction_j, with directions of K numbers each.
func (l Laplace) posterior(features []float64, width int, weights []float64, outputs int, hessian func(outputs []float64) (scales, directions []float64)) (*LastLayer, error) {
	switch {
	case !(l.PriorPrecision >= 0) || math.IsInf(l.PriorPrecision, 1):
		return nil, fmt.Errorf("baselines.Laplace.PriorPrecision is %g; it must be positive, or 0 for the one with the largest marginal likelihood", l.PriorPrecision)
	case width < 1 || outputs < 1 || len(features) == 0 || len(features)%width != 0 || len(weights) != (width+1)*outputs:
		return nil, fmt.Errorf("baselines.Laplace: %d features of width %d and %d weights for %d outputs; want a multiple of the width, and (width+1) times the outputs", len(features), width, len(weights), outputs)
	case params.NotFinite(features) >= 0 || params.NotFinite(weights) >= 0:
		return nil, errors.New("baselines.Laplace: features or weights are not finite: has the training diverged?")
	}
	p := &LastLayer{PriorPrecision: l.PriorPrecision, width: width, weights: mat.NewDense(width+1, outputs, slices.Clone(weights)), root: new(mat.Dense)}
	size, phi := len(weights), p.phi(features)
	sum := mat.NewSymDense(size, nil)
	var f, along mat.Dense
	f.Mul(phi, p.weights)
	for i := range len(features) / width {
		scales, directions := hessian(f.RawRowView(i))
		for j, scale := range scales {
			along.Kronecker(phi.Slice(i, i+1, 0, width+1), mat.NewDense(1, outputs, directions[j*outputs:][:outputs]))
			sum.SymRankOne(sum, scale, along.RowView(0))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(sum, true) {
		return nil, errors.New("baselines.Laplace: the eigenvalues of the Hessian were not found")
	}
	curvatures := eigen.Values(nil)
	for i, c := range curvatures {
		curvatures[i] = max(c, 0) // never negative but by rounding
	}
	squares := floats.Dot(weights, weights)
	if p.PriorPrecision == 0 {
		var err error
		if p.PriorPrecision, err = mostLikelyPrecision(curvatures, squares); err != nil {
			return nil, err
		}
	}
	tau := p.PriorPrecision
	eigen.VectorsTo(p.root)
	p.LogMarginal = (float64(size)*math.Log(tau) - tau*squares) / 2
	for i, c := range curvatures {
		p.LogMarginal -= math.Log(c+tau) / 2
		curvatures[i] = 1 / math.Sqrt(c+tau)
	}
	p.root.Mul(p.root, mat.NewDiagDense(size, curvatures))
	return p, nil
}

// mostLikelyPrecision is the tau at which the derivative of the log marginal likelihood is 0, the only root of
//
//	sum_j c_j / (c_j + tau) = tau |w|^2,
//
// whose left side falls with tau.
func mostLikelyPrecision(curvatures []float64, squares float64) (float64, error) {
	if !(squares > 0) || !(floats.Max(curvatures) > 0) {
		return 0, errors.New("baselines.Laplace: the data or the weights are all 0, so that no prior precision is the most likely; set PriorPrecision")
	}
	low, high := math.Log(1e-300), math.Log(float64(len(curvatures))/squares) // the left side is at most their number
	for range 200 {
		middle, left := (low+high)/2, 0.0
		for _, c := range curvatures {
			left += c / (c + math.Exp(middle))
		}
		if left > math.Exp(middle)*squares {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp(high), nil
}

// phi are features with a 1 beside them, [N, D].
func (p *LastLayer) phi(features []float64) *mat.Dense {
	n := len(features) / p.width
	if n == 0 || len(features)%p.width != 0 {
		panic(fmt.Errorf("baselines.LastLayer: %d features of width %d; give a positive multiple of the width", len(features), p.width))
	}
	phi := mat.NewDense(n, p.width+1, slices.Repeat([]float64{1}, n*(p.width+1)))
	phi.Copy(mat.NewDense(n, p.width, features))
	return phi
}

// Moments returns the mean of the outputs at features, [N*K], and the covariance of the K outputs at each, [N*K*K], without the
// observation noise sigma^2 of a regression. Both are in the units of training. features, here and below, are [N*width] row-major;
// it panics for another length, or none.
func (p *LastLayer) Moments(features []float64) (mean, covariance []float64) {
	phi := p.phi(features)
	n, d := phi.Dims()
	_, k := p.weights.Dims()
	var f mat.Dense
	f.Mul(phi, p.weights)
	var jacobian, spread, block mat.Dense
	identity := mat.NewDiagDense(k, slices.Repeat([]float64{1}, k))
	for i := range n {
		jacobian.Kronecker(phi.Slice(i, i+1, 0, d), identity)
		spread.Mul(&jacobian, p.root)
		block.Mul(&spread, spread.T())
		mean, covariance = append(mean, f.RawRowView(i)...), append(covariance, block.RawMatrix().Data...)
	}
	return mean, covariance
}

// Probit returns the probabilities of classes at features, [N*K], by MacKay's (1992) approximation for each logit f_k
// with the variance v_k: softmax(f_k / sqrt(1 + pi/8 v_k)). It is for the posterior of a classification. v_k counts a shift of all
// logits, which changes no probability, and about which the data say nothing: (diag(p) - p p^T) 1 = 0. With a small tau this shift
// is most of the variance, and probabilities are closer to 1/K than the mean of softmax over draws (Draw).
func (p *LastLayer) Probit(features []float64) []float64 {
	mean, covariance := p.Moments(features)
	_, k := p.weights.Dims()
	for i := range mean {
		mean[i] /= math.Sqrt(1 + math.Pi/8*covariance[i*k+i%k])
	}
	return metrics.Softmax(mean, k, 1)
}

// Draw returns the outputs at features, [N*K], of one last layer drawn from the posterior: one function, whose outputs at several
// features belong together. It calls normal, a draw from N(0, 1), D K times.
func (p *LastLayer) Draw(features []float64, normal func() float64) []float64 {
	d, k := p.weights.Dims()
	z := make([]float64, d*k)
	for i := range z {
		z[i] = normal()
	}
	var step mat.VecDense
	step.MulVec(p.root, mat.NewVecDense(d*k, z))
	var w, f mat.Dense
	w.Add(p.weights, mat.NewDense(d, k, step.RawVector().Data))
	f.Mul(p.phi(features), &w)
	return f.RawMatrix().Data
}

// SWAG is the Gaussian of the parameters w that a training passes through at a constant learning rate (Maddox et al. 2019, "A
// simple baseline for Bayesian uncertainty in deep learning"). After T calls of Add, with their mean m_T and variances v_T, a
// draw is
//
//	w = m_T + sqrt(v_T / 2) z_1 + 1/sqrt(2 (K - 1)) D z_2,   z_1 ~ N(0, I_P),   z_2 ~ N(0, I_K),
//
// where the K columns of D are the last w_t - m_t, each from the mean of its time. P is the number of parameters. Draw
// returns them in the order in which Add gets them. params.Values reads a variable's, and Variable.SetValue sets them.
type SWAG struct {
	// Rank is the largest K; 0 means 20. Fewer calls of Add make it smaller.
	Rank int

	count      float64     // T
	mean, sums []float64   // m_T, and T v_T, [P]
	deviations [][]float64 // the columns of D, the oldest first
}

// Add adds the parameters at the next time, [P], which it does not keep. It panics if P is another one than before, or if Rank is negative.
func (s *SWAG) Add(parameters []float64) {
	if s.mean == nil {
		s.mean, s.sums = make([]float64, len(parameters)), make([]float64, len(parameters))
	}
	if len(parameters) != len(s.mean) {
		panic(fmt.Errorf("baselines.SWAG: there are %d parameters, and before there were %d", len(parameters), len(s.mean)))
	}
	s.count++
	deviation := make([]float64, len(parameters))
	for i, w := range parameters {
		before := w - s.mean[i]
		s.mean[i] += before / s.count
		deviation[i] = w - s.mean[i]
		s.sums[i] += before * deviation[i] // Welford (1962)
	}
	s.deviations = append(s.deviations, deviation)
	s.deviations = s.deviations[max(0, len(s.deviations)-number("baselines.SWAG.Rank", s.Rank, 20)):]
}

// Mean returns m_T, [P]: stochastic weight averaging (Izmailov et al. 2018). It is empty before Add.
func (s *SWAG) Mean() []float64 { return slices.Clone(s.mean) }

// Draw returns a draw of the parameters, [P]. It calls normal, a draw from N(0, 1), P + K times, z_1 first. It is an
// error after fewer than two calls of Add, with a Rank of 1, or if parameters were NaN or infinite.
func (s *SWAG) Draw(normal func() float64) ([]float64, error) {
	if len(s.deviations) < 2 {
		return nil, fmt.Errorf("baselines.SWAG has %d deviations of %g times; a draw needs at least 2", len(s.deviations), s.count)
	}
	drawn := s.Mean()
	for i, sum := range s.sums {
		drawn[i] += math.Sqrt(sum/s.count/2) * normal()
	}
	for _, deviation := range s.deviations {
		floats.AddScaled(drawn, normal()/math.Sqrt(2*float64(len(s.deviations)-1)), deviation)
	}
	if i := params.NotFinite(drawn); i >= 0 {
		return nil, fmt.Errorf("baselines.SWAG: parameter %d of a draw is %g: has the training diverged?", i, drawn[i])
	}
	return drawn, nil
}

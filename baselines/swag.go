package baselines

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// SWAG is the Gaussian of the parameters w that a training passes through at a constant learning rate (Maddox et al. 2019, "A
// simple baseline for Bayesian uncertainty in deep learning"). After T calls of Add, with their mean m_T and variances v_T, a
// draw is
//
//	w = m_T + sqrt(v_T / 2) z_1 + 1/sqrt(2 (K - 1)) D z_2,   z_1 ~ N(0, I_P),   z_2 ~ N(0, I_K),
//
// where the K columns of D are the last w_t - m_t, each from the mean of its time. P is the number of parameters.
type SWAG struct {
	// Rank is the largest K; 0 means 20. Fewer calls of Add make it smaller.
	Rank int

	count      float64     // T
	mean, sums []float64   // m_T, and T v_T, [P]
	deviations [][]float64 // the columns of D, the oldest first
}

// Add adds the parameters at the next time, [P]; P must be the same at all times. It panics if Rank is negative.
func (s *SWAG) Add(parameters []float64) {
	if s.mean == nil {
		s.mean, s.sums = make([]float64, len(parameters)), make([]float64, len(parameters))
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
// error after fewer than two calls of Add or with a Rank of 1.
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
	return drawn, nil
}

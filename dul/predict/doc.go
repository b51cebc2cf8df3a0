// Package predict draws from the posterior predictive distribution of trained models (section 2.2),
//
//	p(y | x) = 1/M sum_m p(y | network_m(x)),
//
// where each of the M samples has fresh noise in all layers. For networks whose last layer is a Gaussian process,
// Marginals computes the distribution of the network's function in closed form.
package predict

// Package predict draws from the posterior predictive distribution of trained models (section 2.2 of the paper),
//
//	p(y | x) = 1/M sum_m p(y | network_m(x)),
//
// each sample m with fresh noise in all layers. A Prediction has class probabilities for a likelihood.Classification, a
// mixture of Gaussians for a likelihood.Regression, a mixture of distributions for any other likelihood.Distribution, and
// the network's outputs for all else. Its Predictive gives densities, quantiles and coverage. Marginals is the closed form
// for networks whose last layer is a Gaussian process.
package predict

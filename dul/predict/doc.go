// Package predict draws from the posterior predictive distribution of trained
// models (section 2.2 of the paper),
//
//	p(y | x) = 1/M sum_m p(y | network_m(x)),
//
// each sample m with fresh noise in all layers. Sample does so for any model;
// what it returns depends on the likelihood: class probabilities of a
// likelihood.Classification, a mixture of Gaussians of a likelihood.Regression, a
// mixture of the distributions of any other likelihood.Distribution, and the network's
// outputs for a likelihood that has none of these. Prediction.Predictive
// has densities, quantiles, coverage and draws. Marginals is the closed form for networks
// whose last layer is a Gaussian process.
package predict

// Package predict draws from the posterior predictive distribution of trained models (section 2.2),
//
//	p(y | x) = 1/M sum_m p(y | network_m(x)),
//
// each of M draws with fresh noise in all layers. Marginals is the closed form for networks whose last layer is a Gaussian
// process.
package predict

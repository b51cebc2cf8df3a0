// Package train fits a nets.Model, a network of stochastic layers with a likelihood. A Trainer minimises
//
//	mean_i -log p(y_i | network(x_i)) + KL(q || p) / N - Scale * mean_i log p_energy(h_i)
//
// over batches: the negative ELBO of N examples divided by N, and the generative objective of the layers' energy models
// (section 2.4 of the paper, "Optimization").
package train

// Package train fits networks of stochastic layers. A nets.Model is a network with
// a likelihood; a Trainer minimises
//
//	mean_i -log p(y_i | network(x_i)) + KL(q || p) / N - Scale * mean_i log p_energy(h_i)
//
// over batches, by optimizers with parameter groups and a learning-rate schedule:
// the negative ELBO of N examples divided by N, and the generative objective of
// the layers' energy models (section 2.4 of the paper, "Optimization"). The
// example is the whole of it.
package train

// Package train fits a nets.Model by minimising, over batches, the negative ELBO of N examples and the generative objective
// of the layers' energies (section 2.4, "Optimization"):
//
//	mean_i -log p(y_i | network(x_i)) + KL(q || p) / N - Scale * mean_i log p_energy(h_i)
package train

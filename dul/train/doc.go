// Package train fits a nets.Model to N examples. It minimises, batch by batch, the negative ELBO divided by N and the
// generative objective of the layers' energies (section 2.4, "Optimization"), in nats for each example:
//
//	mean_i -log p(y_i | network(x_i)) + KL(q || p) / N - LogLikelihoodScale * mean_i log p_energy(h_i)
package train

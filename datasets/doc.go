// Package datasets holds the data of the experiments: the paper's toy regression, its UCI regression sets with their
// splits, the images CIFAR-10, CIFAR-100 and SVHN, and tables of your own as CSV files.
//
// Everything is handed out raw, in the units of the source. Standardise it by [FitScaler] or [FitChannelStats], so that
// only training examples inform it.
//
// The eight small UCI sets and samples of the images ([CIFAR10Sample], [CIFAR100Sample], [SVHNSample]) are part of the
// program; uci/NOTICE.md and sample/NOTICE.md state their origin and terms. [Year] and whole image sets are read from the
// folder that the environment variable DENSITYUNCERTAINTY_DATA names, from the cache, or from their official addresses.
package datasets

// Package datasets holds the data of the experiments, and reads tables of your own. Everything is raw, in the units of the
// source; [FitScaler] and [FitChannelStats] standardise it by training examples alone.
//
// The eight small UCI sets and samples of the images are part of the program. [Year] and whole image sets are read from the
// folder DENSITYUNCERTAINTY_DATA, the cache, or their official addresses.
package datasets

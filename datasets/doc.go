// Package datasets has the data of the experiments, and reads your own tables. All values are in the units of the
// source; [FitScaler] and [FitChannelStats] standardise them by training examples alone.
//
// The eight small UCI sets and samples of the images are part of the program. [Year] and the whole sets of images are
// files that are found or downloaded, and must have their published checksums (see [fetch.Fetcher]; nil has its
// defaults). They are looked for in the folder that the environment variable DENSITYUNCERTAINTY_DATA names, then in the
// cache, and then at their official addresses.
package datasets

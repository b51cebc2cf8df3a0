// Package datasets has the data of the experiments, and reads your own tables. All values are in the units of the
// source; [FitScaler] and [FitChannelStats] standardise them by training examples alone.
//
// The eight small UCI sets and samples of the images are part of the program. [Year] and the whole sets of images are
// read from a local folder or downloaded (package fetch).
package datasets

// Package datasets holds the data of the experiments, and reads tables of your own. All values are in the units of the
// source; [FitScaler] and [FitChannelStats] standardise them by training examples alone.
//
// The eight small UCI sets and samples of the images are part of the program. Package fetch finds [Year] and whole sets of
// images.
package datasets

// Package datasets holds the data of the regression experiments: the toy
// problem of the paper's section "Toy Regression" and the UCI regression sets of
// its table of test RMSE and log-likelihood, with the splits used there.
//
// Everything is handed out raw, in the units of the source. Standardising is a
// separate step ([FitScaler]), so that only training rows can inform it.
//
// The eight small UCI sets are compiled into the program and need no network;
// uci/NOTICE.md states their origin and terms. YearPredictionMSD is too large for
// that: [Year] reads it from a folder or mirror named by the environment variable
// DENSITYUNCERTAINTY_DATA, from the cache, or from its official address (see
// package densityuncertainty/datasets/fetch).
package datasets

// Package datasets holds the data of the experiments: the toy problem of the
// paper's section "Toy Regression", the UCI regression sets of its table of test
// RMSE and log-likelihood, with the splits used there, and the images of its
// classification and out-of-distribution experiments: CIFAR-10, CIFAR-100, SVHN.
//
// Everything is handed out raw, in the units of the source. Standardising is a
// separate step ([FitScaler], [FitChannelStats]), so that only training examples
// can inform it.
//
// The eight small UCI sets are compiled into the program and need no network;
// uci/NOTICE.md states their origin and terms. YearPredictionMSD is too large for
// that: [Year] reads it from a folder named by the environment variable
// DENSITYUNCERTAINTY_DATA, from the cache, or from its official address (see
// package densityuncertainty/datasets/fetch). The image sets are read from the same
// places; [CIFAR10], [CIFAR100] and [SVHN] say under which names. A sample of these
// images is compiled into the program: [CIFAR10Sample], [CIFAR100Sample] and
// [SVHNSample]; sample/NOTICE.md states its origin and terms.
package datasets

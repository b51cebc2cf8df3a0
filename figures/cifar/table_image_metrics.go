package tables

// The further metrics of an image result, by their names in the store. Those of
// the predictions, such as "ood_svhn_auroc_energy", are named by package
// predictions. What an ensemble cost is that of all its members together.
const (
	MetricAccuracy = "accuracy" // part of the test images, 0 to 1
	MetricECE      = "ece10"    // expected calibration error with 10 bins

	// MetricPosteriorStd is the geometric mean of the standard deviations of the trained
	// posterior: of weights (MFVI), factors (Rank-1 BNN), or the two noise scales of
	// density layers. Methods without one lack it.
	MetricPosteriorStd = "posterior_std"

	MetricParameters      = "parameters"        // trainable parameters, energy models included
	MetricTrainingGFLOP   = "training_gflop"    // 10^9 floating-point operations of a training step for one image
	MetricSecondsPerEpoch = "seconds_per_epoch" // of training, without compilation
	MetricImagesPerSecond = "images_per_second" // in training
)

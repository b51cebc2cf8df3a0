package tables

// The further metrics of an image result, by their names in the store. Those of
// the predictions, such as "ood_svhn_auroc_energy", are named by package
// predictions.
const (
	MetricAccuracy = "accuracy" // part of the test images, 0 to 1
	MetricECE      = "ece10"    // expected calibration error with 10 bins

	MetricParameters      = "parameters"        // trainable parameters, energy models included
	MetricTrainingGFLOP   = "training_gflop"    // 10^9 floating-point operations of a training step for one image
	MetricSecondsPerEpoch = "seconds_per_epoch" // of training, without compilation
	MetricImagesPerSecond = "images_per_second" // in training
)

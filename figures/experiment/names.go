package experiment

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The metrics of a result, by their names in the store. Those of predictions out of distribution, such as
// "ood_svhn_auroc_energy", are made by the package of the image study.
const (
	MetricNLL  = "nll"  // negative log likelihood in nats; of a regression in the target's own units
	MetricRMSE = "rmse" // root mean squared error in the target's own units

	MetricCRPS     = "crps"       // continuous ranked probability score, in the target's own units
	MetricCoverage = "coverage95" // part of the targets inside central 95% intervals of the predictive distribution, 0 to 1
	MetricSpearman = "spearman"   // rank correlation of predicted variance and squared error; there if the variances differ

	MetricNoiseStd  = "noise_std" // standard deviation of the observation noise, in the target's own units
	MetricSharpness = "sharpness" // mean standard deviation of the target's predictive distribution, noise and function, in the target's own units

	MetricModelStd = "model_std" // mean standard deviation of the function at the test inputs, in the target's own units

	MetricAccuracy = "accuracy" // part of the test examples, 0 to 1
	MetricECE      = "ece10"    // expected calibration error with 10 bins
)

// DefaultDir is the folder of the committed results, figures/runs of the checkout that holds the
// working directory.
func DefaultDir() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("experiment: finding the working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if folder := filepath.Join(dir, "figures", "runs"); IsCommitted(folder) {
			return folder, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("experiment: %s is not inside a checkout of densityuncertainty; name the store's folder", start)
		}
	}
}

// IsCommitted says whether a folder is figures/runs of a checkout, whose results are committed.
func IsCommitted(folder string) bool {
	path, err := filepath.Abs(folder)
	content, readErr := os.ReadFile(filepath.Join(path, "..", "..", "go.mod"))
	return err == nil && readErr == nil && strings.HasSuffix(filepath.ToSlash(path), "/figures/runs") && bytes.HasPrefix(content, []byte("module densityuncertainty\n"))
}

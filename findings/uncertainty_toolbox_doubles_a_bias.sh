#!/usr/bin/env bash
# Expected: after get_quantile_recalibrator of the Uncertainty Toolbox (isotonic recalibration), half of the targets that it was
#   fitted to are below the recalibrated median, and get_proportion_under_quantile counts the targets below a quantile.
# Seen: if standard normal targets are predicted as N(1, 1), the recalibrated median is 2.0 instead of 0: 98% of the targets are below
#   it, and 84% were below the median before. The package counts 16% there, and after the recalibration calls the error 0.001.
#   It divides prediction minus target by the standard deviation, and compares it with the normal quantile. So it counts the targets
#   above the opposite quantile, and the shift that is to undo a bias is added to it. Without a bias both are the same.
# Why it matters: to correct a bias is what this recalibration can do and a factor for the standard deviations cannot. It doubles the bias,
#   and the package's own calibration error hides that. The default, "interval", does not distinguish the sides.
# Versions: uncertainty-toolbox 0.1.1, scikit-learn 1.9.1, SciPy 1.17.1, NumPy 2.4.6. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet uncertainty-toolbox==0.1.1 scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
"$work/venv/bin/python" - <<'PYTHON'
import sys
import numpy as np
from scipy.stats import norm
from uncertainty_toolbox.metrics_calibration import (
    get_proportion_lists_vectorized,
    get_proportion_under_quantile,
    get_quantile,
    mean_absolute_calibration_error,
)
from uncertainty_toolbox.recalibration import get_quantile_recalibrator, iso_recal

n = 1000
targets, sd, same = norm.ppf((np.arange(n) + 0.5) / n), np.ones(n), True
for bias in 0, 1:
    forecast = np.full(n, float(bias)), sd
    recalibrated = get_quantile_recalibrator(*forecast, targets)
    for level in 0.1, 0.5, 0.9:
        before, after = get_quantile(*forecast, level), recalibrated(*forecast, level)
        below = [float(np.mean(targets < q)) for q in (before, after)]
        says = get_proportion_under_quantile(*forecast, targets, level)
        print(f"N({bias}, 1), quantile {level} is {before[0]:.2f}: {below[0]:.3f} are below, the package counts {says:.3f};", end=" ")
        print(f"recalibrated {after[0]:.2f}: {below[1]:.3f} are below")
        want = norm.cdf(norm.ppf(level) + np.array([bias, 2 * bias, -bias]))
        same = same and np.allclose([*below, says], want, atol=0.01)
    model = iso_recal(*get_proportion_lists_vectorized(*forecast, targets, prop_type="quantile"))
    errors = [mean_absolute_calibration_error(*forecast, targets, recal_model=m, prop_type="quantile") for m in (None, model)]
    print(f"  calibration error of the package: {errors[0]:.3f}, recalibrated {errors[1]:.3f}")
    same = same and errors[1] < 0.002 and abs(errors[0] - 0.26 * bias) < 0.01
if not same:
    sys.exit("changed")
PYTHON

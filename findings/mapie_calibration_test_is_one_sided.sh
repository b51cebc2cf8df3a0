#!/usr/bin/env bash
# Expected: MAPIE's spiegelhalter_p_value, "under the null hypothesis of perfect calibration", is small if probabilities are far from
#   the frequencies, whether they are too far from 1/2 (overconfident) or too near to it (underconfident).
# Seen: it is the probability of a larger z, and only overconfidence makes z large. If of 2,000 inputs 95% of those with the
#   probability 0.8 are positive, and 5% of those with 0.2, the p-value is 1.0. If 80% and 20% are, as they should be, it is 0.5.
# Why it matters: averaged predictions and label smoothing tend to be underconfident. For them this test of calibration gives the
#   larger p-values the worse they are calibrated. Spiegelhalter's test is usually two-sided.
# Versions: mapie 1.6.0, SciPy 1.17.1, scikit-learn 1.9.1, NumPy 2.4.6. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet mapie==1.6.0 scipy==1.17.1 scikit-learn==1.9.1 numpy==2.4.6
"$work/venv/bin/python" - <<'PYTHON'
import sys
import numpy as np
from mapie.metrics.calibration import spiegelhalter_p_value, spiegelhalter_statistic
from scipy.stats import norm

score, found = np.repeat([0.2, 0.8], 1000), []
for positives in (350, 650), (200, 800), (180, 820), (50, 950):
    y = np.concatenate([np.arange(1000) < k for k in positives]).astype(int)
    z = float(spiegelhalter_statistic(y, score))
    found.append(float(spiegelhalter_p_value(y, score)))
    print(f"probability 0.2, {positives[0] / 10:g}% positive; 0.8, {positives[1] / 10:g}% positive:", end=" ")
    print(f"z {z:.2f}, p-value {found[-1]:.4f}, on both sides {2 * norm.sf(abs(z)):.4f}")
if not (found[0] < 1e-6 and abs(found[1] - 0.5) < 1e-3 and 0.95 < found[2] < found[3] and found[3] > 0.9999):
    sys.exit("changed")
PYTHON

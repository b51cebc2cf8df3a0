#!/usr/bin/env bash
# Expected: mlxtend's proportion_difference(0.92, 0.84, 100), "difference of proportions test for classifiers", has the p-value of
#   proportion_difference(0.84, 0.92, 100), and the p-value of equal accuracies is 1.
# Seen: the p-values are 0.960, 0.040 and 0.5. It returns the probability of a smaller z. If the first classifier is better, the
#   p-value is near 1, however large the difference is. If it is worse, the p-value is half of the two-sided one (0.079).
# Why it matters: whoever names the better classifier first finds no difference, ever. Whoever names the worse one first finds equal
#   classifiers different twice as often as the level says. The user guide's own example is 0.84 and 0.92 of 100. It asks for z
#   beyond 1.96, gets -1.754, and calls the difference significant because of the 0.040. The tests beside it are two-sided
#   (McNemar's, the t-tests).
# Versions: mlxtend 0.25.0, SciPy 1.17.1, pandas 3.1.1, scikit-learn 1.9.1, NumPy 2.4.6. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet mlxtend==0.25.0 scipy==1.17.1 pandas==3.1.1 scikit-learn==1.9.1 numpy==2.4.6
"$work/venv/bin/python" - <<'PYTHON'
import sys
import numpy as np
from mlxtend.evaluate import proportion_difference
from scipy.stats import norm

found = []
for first, second in (0.84, 0.92), (0.92, 0.84), (0.99, 0.5), (0.8, 0.8):
    z, p = map(float, proportion_difference(first, second, 100))
    found.append(p)
    print(f"accuracies {first} and {second} of 100: z {z:.3f}, p-value {p:.3f}, two-sided {2 * norm.sf(abs(z)):.3f}")
if not np.allclose(found, [0.0397, 0.9603, 1, 0.5], atol=1e-3):
    sys.exit("changed")
PYTHON

#!/usr/bin/env bash
# Expected: the median of 1, 2, 3, 4 with the weights 1, 1, 1, 1000 is 4, as of a thousand copies of 4.
# Seen: corner.quantile and dynesty.utils.quantile give 2.5, as with equal weights. They put the values at the sums of the
#   weights before them, divided by the last of these sums. The weight of the largest value is in none. Each other weight
#   belongs to the gap above its value: with 1, 1, 1000, 1 the median is 3.499.
# Why it matters: the titles of their plots show these quantiles as the credible interval of weighted posterior draws. Weights
#   of importance sampling are uneven, and where a posterior ends at a limit the largest value can have most of the weight.
# Versions: corner 2.3.0, dynesty 3.1.0, NumPy 2.4.6. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet corner==2.3.0 dynesty==3.1.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PYTHON'
import sys
import numpy as np
from corner import quantile
from dynesty.utils import quantile as of_dynesty

x, same = np.array([1.0, 2, 3, 4]), True
for weights in [1, 1, 1, 1], [1, 1, 1, 1000], [1, 1, 1000, 1]:
    copies = np.median(np.repeat(x, weights))
    found = [float(q(x, [0.5], weights=np.array(weights, float))[0]) for q in (quantile, of_dynesty)]
    print(f"weights {weights}: median of copies {copies}, corner {found[0]:.4g}, dynesty {found[1]:.4g}")
    same = same and np.allclose(found, 3.499 if weights[2] > 1 else 2.5)
if not same:
    sys.exit("changed")
PYTHON

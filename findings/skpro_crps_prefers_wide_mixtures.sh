#!/usr/bin/env bash
# Expected: the mean CRPS of skpro for a NormalMixture of one component is that for its Normal: the smallest if the forecast is the
#   distribution of the targets, and never negative.
# Seen: for standard normal targets it is the smaller the wider the forecast is. For N(0, 1) and the target 0 it is 0 (as Normal 0.234),
#   and for half N(0, 0.1) and half N(0, 3), with these standard deviations, -0.457 (right: 0.201). CRPS subtracts half of E|X - X'|.
#   NormalMixture says that it computes this exactly. It does so from the mean of the components' variances, without their means,
#   and even for one component the result is sqrt(2) times too large.
# Why it matters: NormalMixture is the prediction of skpro's mixture density network. Who tunes it by CRPS, or compares it with another
#   forecast, prefers the one that says least. LogLoss of NormalMixture is right.
# Versions: skpro 2.16.0, SciPy 1.17.1, pandas 3.0.6, scikit-learn 1.9.1, NumPy 2.4.6. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet skpro==2.16.0 scipy==1.17.1 pandas==3.0.6 scikit-learn==1.9.1 numpy==2.4.6
"$work/venv/bin/python" - <<'PYTHON'
import sys
import numpy as np
import pandas as pd
from scipy.stats import norm
from skpro.distributions import Normal, NormalMixture
from skpro.metrics import CRPS

n = 999
y = pd.DataFrame({"y": norm.ppf((np.arange(n) + 0.5) / n)})
found = []
for sd in 0.5, 1, 3:
    forecasts = [
        NormalMixture(pi=np.ones((n, 1)), mu=np.zeros((n, 1)), sigma=np.full((n, 1), sd), columns=["y"]),
        Normal(mu=np.zeros((n, 1)), sigma=np.full((n, 1), sd), columns=["y"]),
    ]
    found.append([float(CRPS()(y, f)) for f in forecasts])
    print(f"forecast N(0, {sd}) of standard normal targets: CRPS as NormalMixture {found[-1][0]:.3f}, as Normal {found[-1][1]:.3f}")

zero = pd.DataFrame({"y": [0.0]})
one = float(CRPS()(zero, NormalMixture(pi=np.ones((1, 1)), mu=np.zeros((1, 1)), sigma=np.ones((1, 1)), columns=["y"])))
two = NormalMixture(pi=np.array([[0.5, 0.5]]), mu=np.zeros((1, 2)), sigma=np.array([[0.1, 3.0]]), columns=["y"])
mixed = float(CRPS()(zero, two))
x = np.linspace(0, 40, 400001)
tail = (norm.sf(x / 0.1) + norm.sf(x / 3)) / 2
right = 2 * np.trapezoid(tail**2, x)  # the definition: the integral of (F(x) - [x >= 0])^2
print(f"at 0: N(0, 1) {one:.3f}, half N(0, 0.1) and half N(0, 3) {mixed:.3f}, by integration {right:.3f}")
mixture, normal = np.transpose(found)
wider = mixture[0] > mixture[1] > mixture[2] and normal[1] < min(normal[0], normal[2])
if not (wider and np.isclose(one, 0) and np.isclose(mixed, -0.4568, atol=1e-3) and np.isclose(right, 0.2007, atol=1e-3)):
    sys.exit("changed")
PYTHON

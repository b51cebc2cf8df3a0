#!/usr/bin/env bash
# Expected: BayesianLinearRegression(alpha=a) of River has the same posterior after learn_many(X, y) as after learn_one for each row.
#   A batch "is exactly the sequence of rank-1 learn_one updates", says its source. Its formulas are Bishop's, where alpha is the
#   precision of the prior (one over its variance).
# Seen: learn_many with alpha a is learn_one with alpha 1/a. For weights 3 and -2, five exact rows, alpha 100 and the input (1, 1),
#   where the exact posterior mean is 0.137, learn_one predicts 0.137 and learn_many 1.002. With alpha 0.01 it is the other way round.
#   The model keeps the precision and its inverse, and starts both with 1/alpha on the diagonal; learn_one without smoothing uses
#   the inverse, learn_many the precision. With smoothing learn_one uses the precision, too. With alpha 1, the default, nothing shows.
# Why it matters: who asks for a strong prior gets a weak one, and a weak one shrinks the weights and the predictive variance. This
#   depends on whether the rows arrived alone or together.
# Versions: river 0.26.1, NumPy 2.4.6, pandas 3.1.1. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet river==0.26.1 numpy==2.4.6 pandas==3.1.1
"$work/venv/bin/python" - <<'PYTHON'
import sys
import numpy as np
import pandas as pd
from river.linear_model import BayesianLinearRegression

x = np.array([[1.0, 0], [0, 1], [1, 1], [1, -1], [2, 1]])
y, at, same = x @ [3, -2], np.ones(2), True


def exact(alpha, weights=np.ones(5), of_prior=1.0):
    """Mean and standard deviation of the prediction at (1, 1), noise of precision 1."""
    covariance = np.linalg.inv(of_prior * alpha * np.eye(2) + (x.T * weights) @ x)
    return [at @ covariance @ (x.T * weights) @ y, np.sqrt(1 + at @ covariance @ at)]


def predicted(model):
    d = model.predict_one({"a": 1, "b": 1}, with_dist=True)
    return [float(d.mu), d.sigma]


for alpha in 0.01, 1, 100:
    rows = pd.DataFrame(x, columns=["a", "b"])
    one, many, smooth = (BayesianLinearRegression(alpha=alpha, beta=1, smoothing=s) for s in (None, None, 0.9))
    for row, target in zip(rows.to_dict("records"), y):
        one.learn_one(row, target)
        smooth.learn_one(row, target)
    many.learn_many(rows, pd.Series(y))
    found, want = [predicted(m) for m in (one, many)], exact(alpha)
    print(f"alpha {alpha}: learn_one {found[0][0]:.4f} ± {found[0][1]:.4f}, learn_many {found[1][0]:.4f} ± {found[1][1]:.4f},", end=" ")
    print(f"exact {want[0]:.4f} ± {want[1]:.4f}")
    same = same and np.allclose(found, [want, exact(1 / alpha)])
    weights = 0.1 * 0.9 ** np.arange(4.0, -1, -1)
    got, want = predicted(smooth), exact(alpha, weights, 0.9**5)
    print(f"  learn_one, smoothing 0.9: {got[0]:.4f} ± {got[1]:.4f}, exact {want[0]:.4f} ± {want[1]:.4f}")
    same = same and np.allclose(got, exact(1 / alpha, weights, 0.9**5))
if not same:
    sys.exit("changed")
PYTHON

#!/usr/bin/env bash
# Expected: a member of an ensemble that is missing (NaN) counts nowhere, as in crps_ensemble and threshold_brier_score of xskillscore. Or
#   the score is NaN.
# Seen: in rps it counts as a forecast of the highest category. For the edges -1, 0, 1 and the observation 2 ten members at -2 have the
#   score 3, and 0.03 if nine of them are missing. With the signs of edges, members and observation changed it stays 3. For normal observations
#   and forecasts with two of ten members missing it is 0.607, and for the eight that are there 0.588. NaN is below no edge, so the
#   distribution function is too small at each, and the share is taken of all members. A score is NaN only if all are missing.
# Why it matters: ensembles of different sizes in one array are filled up with NaN. The score of a small one is too good where the
#   observation is high, and too bad where it is low, by nothing that it forecast.
# Versions: xskillscore 0.0.29, xarray 2026.9.0, SciPy 1.17.1, NumPy 2.4.6. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet xskillscore==0.0.29 xarray==2026.9.0 scipy==1.17.1 numpy==2.4.6
"$work/venv/bin/python" - <<'PYTHON'
import sys
import numpy as np
import xarray as xr
import xskillscore as xs

edges, found = np.array([-1.0, 0, 1]), []


def defined(observed, members):
    """The ranked probability score of the members that are there."""
    shares = [np.nanmean(np.where(np.isnan(members), np.nan, members < e), axis=1) - (observed < e) for e in edges]
    return np.mean(np.sum(np.square(shares), axis=0))


def report(name, observed, members):
    o, f = xr.DataArray(observed, dims="time"), xr.DataArray(members, dims=("time", "member"))
    found.append((float(xs.rps(o, f, edges)), defined(observed, members)))
    others = [float(xs.crps_ensemble(o, f)), float(xs.threshold_brier_score(o, f, 0.0))]
    print(f"{name}: rps {found[-1][0]:.4f}, by its definition {found[-1][1]:.4f}; crps_ensemble {others[0]:.4f},", end=" ")
    print(f"threshold_brier_score {others[1]:.4f}")


for sign in 1.0, -1.0:
    for missing in 0, 5, 9:
        members = np.full((1, 10), -2 * sign)
        members[0, :missing] = np.nan
        report(f"observed {2 * sign:g}, ten members at {-2 * sign:g}, {missing} missing", np.array([2 * sign]), members)
random = np.random.default_rng(0)
observed, members = random.normal(size=4000), random.normal(size=(4000, 10))
report("normal", observed, members)
report("normal, the first eight", observed, members[:, :8])
members[:, 8:] = np.nan
report("normal, the last two missing", observed, members)
want = [(3, 3), (0.75, 3), (0.03, 3), (3, 3), (3, 3), (3, 3), (0.5739, 0.5739), (0.5882, 0.5882), (0.6074, 0.5882)]
if not np.allclose(found, want, atol=1e-4):
    sys.exit("changed")
PYTHON

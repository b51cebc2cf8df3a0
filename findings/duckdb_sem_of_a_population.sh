#!/usr/bin/env bash
# Expected: DuckDB's sem(x), "the standard error of the mean", is stddev(x) / sqrt(count(x)) of the same DuckDB, and what sem of
#   SciPy and pandas is.
# Seen: it is stddev_pop(x) / sqrt(count(x)), while stddev(x) is that of a sample.
# Why it matters: an interval of two standard errors around a mean over five seeds is 11% too narrow, and over two seeds 29%.
#   The factor, sqrt(1 - 1/n), is close to 1 for large n, so that a check on a large table does not show it.
# Versions: duckdb 2.0.1, SciPy 1.17.1, pandas 3.1.1. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet duckdb==2.0.1 scipy==1.17.1 pandas==3.1.1
"$work/venv/bin/python" - <<'PYTHON'
import math
import sys
import duckdb
import pandas as pd
import scipy.stats

x = pd.Series([1.0, 2.0, 3.0, 7.0, 2.0])
sem, sample, population = duckdb.query(
    f"select sem(x), stddev(x) / sqrt(count(x)), stddev_pop(x) / sqrt(count(x)) from (select unnest({list(x)}) as x)"
).fetchall()[0]
print(f"DuckDB: sem(x) {sem:.6f}, stddev(x) / sqrt(count(x)) {sample:.6f}, stddev_pop(x) / sqrt(count(x)) {population:.6f}")
print(f"SciPy sem {scipy.stats.sem(x):.6f}, pandas sem {x.sem():.6f}")
if not (math.isclose(sem, population) and math.isclose(sample, x.sem()) and sem < sample):
    sys.exit("changed")
PYTHON

#!/usr/bin/env bash
# Expected: pandas.read_parquet(file, filters=[("x", "!=", 3)]) has the rows of read_parquet(file) with x != 3, and in DuckDB
#   "where x = 3" has no row whose x is NaN.
# Seen: the file has 3, 3, NaN, 3. Reading and then filtering by x != 3 gives one row, NaN. Filtering while reading gives none.
#   DuckDB finds no NaN by isnan(x), none by x <> 3, and returns all four rows, NaN among them, for x = 3. A Parquet file has
#   the least and the largest number of a group of rows, and NaN is neither. Both readers take 3 and 3 for all that is there.
#   DuckDB reads it right with the option can_have_nan, which is off.
# Why it matters: NaN marks a diverged run. "How many did not converge?" is answered by 0, and a mean over x = 3 is NaN.
# Versions: pandas 3.1.1, pyarrow 26.0.1, duckdb 2.0.1. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pandas==3.1.1 pyarrow==26.0.1 duckdb==2.0.1
"$work/venv/bin/python" - "$work/x.parquet" <<'PYTHON'
import sys
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

file = sys.argv[1]
pq.write_table(pa.table({"x": np.array([3, 3, np.nan, 3])}), file)
whole = pd.read_parquet(file)
after, while_reading = int((whole.x != 3).sum()), len(pd.read_parquet(file, filters=[("x", "!=", 3)]))
print(f"rows with x != 3 in pandas: {after} after reading, {while_reading} while reading")
count = lambda condition, source: duckdb.query(f"select count(*) from {source} where {condition}").fetchall()[0][0]
seen = []
for condition in "isnan(x)", "x <> 3", "x = 3":
    counts = [count(condition, source) for source in (f"'{file}'", f"read_parquet('{file}', can_have_nan=true)")]
    print(f"rows with {condition} in DuckDB: {counts[0]}, with can_have_nan {counts[1]}")
    seen += counts
if [after, while_reading, *seen] != [1, 0, 0, 1, 0, 1, 4, 3]:
    sys.exit("changed")
PYTHON

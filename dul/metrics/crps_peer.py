"""scoringrules' time for what BenchmarkCRPS measures: microseconds of one core for each row.

    go test ./dul/metrics -run '^$' -bench CRPS -cpu 1
    python dul/metrics/crps_peer.py

Rows are mixtures of Gaussians with equal weights, as of predict.Mixture. The deviations of a row differ by a factor.
Needs numpy, scipy and scoringrules from the registry.
"""

import importlib.metadata
import time

import numpy as np
import scoringrules

ROWS = 20
random = np.random.default_rng(1)
print("scoringrules", importlib.metadata.version("scoringrules"), "numpy", np.__version__)
for draws in 50, 100, 1000:
    for ratio in 1, 3, 100:
        target = 2 * random.normal(size=ROWS)
        mean = random.normal(size=(ROWS, draws)) / 2
        std = np.tile(float(ratio) ** -np.linspace(0, 1, draws), (ROWS, 1))
        began = time.process_time()
        for y, m, s in zip(target, mean, std):
            scoringrules.crps_mixnorm(y, m, s)
        print(f"draws={draws}/deviations=1:{ratio} {(time.process_time() - began) / ROWS * 1e6:.0f} us/row")

"""Prints mean and standard deviation of a density network's prediction, by its weights: weights.py FILE x1 x2 ..."""
import json
import sys

import numpy as np
from safetensors import safe_open

file = safe_open(sys.argv[1], "numpy")
w = {name.removeprefix("model/"): file.get_tensor(name).astype(float) for name in file.keys()}
scale, draws, random = json.loads(file.metadata()["scale"]), 20000, np.random.default_rng(1)
h = np.tile((np.array(sys.argv[2:], float) - scale["inputs"]["Mean"]) / scale["inputs"]["Std"], (draws, 1))
for layer in ["network/hidden_0/", "network/output/"]:
    lower = np.tril(w[layer + "energy/lower"], -1) + np.eye(h.shape[1])
    energy = ((h @ lower) ** 2 * np.exp(-w[layer + "energy/log_variance"]) / 2).sum(1, keepdims=True)
    std = np.sqrt(np.exp(w[layer + "gamma_log_variance"]) * energy + np.exp(w[layer + "beta_log_variance"]))
    h = h @ w[layer + "weights"] + w[layer + "bias"]
    h = h + std * random.standard_normal(h.shape)
    h = h if layer == "network/output/" else np.maximum(h, 0)
y = h[:, 0] * scale["Unit"] + scale["Zero"]
print(y.mean(), np.sqrt(y.var() + np.exp(w["observation_log_variance"].item()) * scale["Unit"] ** 2))

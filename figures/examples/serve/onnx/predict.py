"""Prints mean and standard deviation of a prediction by 20,000 draws of an ONNX file: predict.py FILE x1 x2 ..."""
import sys

import numpy as np
import onnxruntime

x = np.tile(np.array(sys.argv[2:], float), (20000, 1))  # one draw for each row
seed = np.array([1, 0, 0], np.uint64)  # and [1, 1, 0] for other draws
mean, variance = onnxruntime.InferenceSession(sys.argv[1]).run(None, {"x": x, "seed": seed})
print(mean.mean(), np.sqrt(variance.mean() + mean.var()))

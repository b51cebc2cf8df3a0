"""Records the cases of laplace_test.go, in float64, from the formulas: python baselines/recorded.py

Needs numpy and scipy. With torch and laplace-torch (0.3) it also compares Laplace with that package: --peer.
"""

import pathlib
import sys

import numpy as np
from scipy import optimize, special

HERE = pathlib.Path(__file__).parent
CASES = HERE.parent / "dul" / "layertest" / "fixtures" / "testdata"
random = np.random.default_rng(62)


def log_marginal(h, w, tau):
    return (w.size * np.log(tau) - tau * np.sum(w**2) - np.linalg.slogdet(h + tau * np.eye(w.size))[1]) / 2


def best(h, w):
    found = optimize.minimize_scalar(lambda t: -log_marginal(h, w, np.exp(t)), bounds=(-30, 10), method="bounded")
    slope = lambda t: w.size / t - np.sum(w**2) - np.trace(np.linalg.inv(h + t * np.eye(w.size)))
    return optimize.brentq(slope, np.exp(found.x) / 2, np.exp(found.x) * 2, xtol=1e-300, rtol=1e-15)


def one(x):
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def laplace(name, n, width, k, noise=None):
    train, test = np.abs(random.normal(size=(n, width))), np.abs(2 * random.normal(size=(6, width)))
    w = random.normal(size=(width + 1, k))
    phi = one(train)
    if noise:
        h = phi.T @ phi / noise
    else:
        p = special.softmax(phi @ w, axis=1)
        h = sum(np.kron(np.outer(f, f), np.diag(q) - np.outer(q, q)) for f, q in zip(phi, p))
    case = {"train": train, "test": test, "w": w, "noise": np.float64(noise or 0)}
    for label, tau in ("fixed", 0.7), ("best", best(h, w)):
        inverse = np.linalg.inv(h + tau * np.eye(w.size))
        j = [np.kron(f, np.eye(k)) for f in one(test)]
        covariance = np.array([a @ inverse @ a.T for a in j])
        scale = np.sqrt(1 + np.pi / 8 * np.array([np.diag(c) for c in covariance]))
        case |= {f"{label}_tau": tau, f"{label}_marginal": log_marginal(h, w, tau), f"{label}_covariance": covariance, f"{label}_probit": special.softmax(one(test) @ w / scale, axis=1)}
    np.savez(CASES / f"{name}.npz", mean=one(test) @ w, **case)
    return case


def swag(name, times, rank, size=7):
    w = np.cumsum(random.normal(size=(times, size)), axis=0)
    means = np.array([w[: t + 1].mean(axis=0) for t in range(times)])
    d = (w - means)[-rank:].T
    z1, z2 = random.normal(size=size), random.normal(size=d.shape[1])
    draw = means[-1] + np.sqrt(w.var(axis=0) / 2) * z1 + d @ z2 / np.sqrt(2 * (d.shape[1] - 1))
    np.savez(CASES / f"{name}.npz", w=w, rank=np.float64(rank), z=np.concatenate([z1, z2]), mean_w=means[-1], draw=draw)


regression, classes = laplace("last_layer_laplace_regression", 40, 5, 1, 0.3), laplace("last_layer_laplace_classes", 40, 4, 3)
swag("swag_few", 5, 20)
swag("swag_many", 50, 20)

if "--peer" in sys.argv:
    import importlib.metadata

    import torch
    from laplace import Laplace

    torch.set_default_dtype(torch.float64)
    for case in regression, classes:
        k = case["w"].shape[1]
        model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Linear(*np.subtract(case["w"].shape, (1, 0))))
        with torch.no_grad():
            model[1].weight[:], model[1].bias[:] = torch.tensor(case["w"][:-1].T), torch.tensor(case["w"][-1])
        x, noise = torch.tensor(case["train"]), float(case["noise"])
        y = torch.zeros(len(x), 1) if noise else torch.zeros(len(x), dtype=torch.long)
        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
        for label in "fixed", "best":
            kind = {"sigma_noise": noise**0.5} if noise else {}
            la = Laplace(model, "regression" if noise else "classification", subset_of_weights="last_layer", hessian_structure="full", prior_precision=float(case[f"{label}_tau"]), **kind)
            la.fit(data)
            test = torch.tensor(case["test"])
            if noise:
                off = la(test)[1].detach().numpy() / case[f"{label}_covariance"] - 1
            else:
                off = la(test, link_approx="probit").detach().numpy() / case[f"{label}_probit"] - 1
            print(importlib.metadata.version("laplace-torch"), "regression" if noise else "classes", label, "largest relative difference", abs(off).max())

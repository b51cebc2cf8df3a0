"""What other packages call by the names of our metrics, for the twelve predictions of README.md.

    python -m venv peers && peers/bin/pip install numpy==2.5.5 scipy==1.18.1 scikit-learn==1.9.1 torch==2.15.0 \\
        torchmetrics==1.9.0 netcal==1.4.0 pytorch-ood==0.4.0 uncertainty-calibration==0.1.4 pycalib==0.1.0.dev6 mapie==1.6.0 relplot==1.0.3 scoringrules==0.11.0 \\
        properscoring==0.1 uncertainty-toolbox==0.1.1 CRPS==2.0.4 xskillscore==0.0.29 arviz-stats==1.3.3 arviz-base==1.3.1
    peers/bin/python dul/metrics/peers.py

Prints lines as in testdata/peers.csv: quantity, package, version, value. A package that is not there is named and left out.
"""

import csv
import importlib.metadata
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
p = np.array([0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.5, 0.6, 0.7, 0.8, 1])
y = np.array([0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1])
both = np.stack([1 - p, p], axis=1)
members, target = np.array([0.0, 1, 2, 3]), 1.5
mean, std, targets = np.array([0.0, 1, 2, 3]), np.array([1, 1, 2, 0.5]), np.array([0.5, 1, -1, 3.5])
chains = np.sin(0.37 * np.arange(100.0) ** 2 + np.arange(4.0)[:, None])


def scikit_learn():
    from sklearn import metrics

    precision, recall, _ = metrics.precision_recall_curve(y, p)
    yield "Brier", metrics.brier_score_loss(y, p)
    yield "NLL", metrics.log_loss(y, p)
    yield "AUROC", metrics.roc_auc_score(y, p)
    yield "area under precision-recall, trapezoid", metrics.auc(recall, precision)
    yield "area under precision-recall, step", metrics.average_precision_score(y, p)


def torchmetrics():
    import torch
    from torchmetrics import classification

    for name, dtype in ("float32", torch.float32), ("float64", torch.float64):
        of = torch.tensor(p, dtype=dtype)
        yield f"ECE, class 1 ({name})", classification.BinaryCalibrationError(n_bins=10)(of, torch.tensor(y))
        of = torch.tensor(both, dtype=dtype)
        yield f"ECE, predicted class ({name})", classification.MulticlassCalibrationError(2, n_bins=10)(of, torch.tensor(y))
    yield "AUROC", classification.BinaryAUROC()(torch.tensor(p), torch.tensor(y))
    yield "area under precision-recall, step", classification.BinaryAveragePrecision()(torch.tensor(p), torch.tensor(y))


def netcal():
    from netcal.metrics import ACE, ECE

    yield "ECE, class 1", ECE(10).measure(p, y)
    yield "ECE, adaptive (ACE, class 1)", ACE(10).measure(p, y)


def pytorch_ood():
    import torch
    from pytorch_ood.metrics import OODMetrics

    of = OODMetrics()
    of.update(torch.tensor(p), torch.tensor(-y))  # negative labels are out of distribution
    yield from of.compute().items()


def uncertainty_calibration():
    import calibration

    yield "ECE, predicted class", calibration.get_ece(both, y, num_bins=10)
    yield "calibration error, defaults (debiased)", calibration.get_calibration_error(p, y)


def pycalib():
    from pycalib import metrics

    yield "ECE, predicted class (conf_ECE)", metrics.conf_ECE(y, both, bins=10)
    yield "ECE", metrics.ECE(y, both, bins=10)
    yield "full_ECE", metrics.full_ECE(y, both, bins=10)


def mapie():
    from mapie.metrics.calibration import expected_calibration_error

    yield "ECE, class 1", expected_calibration_error(y, p, num_bins=10)


def relplot():
    from relplot import metrics

    yield "ECE, class 1", metrics.binnedECE(p, y, nbins=10)
    yield "ECE, smooth", metrics.smECE(f=p, y=y)


def scoringrules():
    import scoringrules as sr

    for estimator in "qd", "fair", "akr":
        yield f"CRPS, four points ({estimator})", sr.crps_ensemble(target, members, estimator=estimator)
    yield "CRPS, four Gaussians", sr.crps_normal(targets, mean, std).mean()
    yield "NLL, four Gaussians", sr.logs_normal(targets, mean, std).mean()


def properscoring():
    import properscoring as ps

    yield "CRPS, four points", ps.crps_ensemble(target, members)
    yield "CRPS, four Gaussians", ps.crps_gaussian(targets, mean, std).mean()


def uncertainty_toolbox():
    from uncertainty_toolbox import metrics_scoring_rule

    yield "CRPS, four Gaussians", metrics_scoring_rule.crps_gaussian(mean, std, targets)
    yield "NLL, four Gaussians", metrics_scoring_rule.nll_gaussian(mean, std, targets)


def CRPS():
    from CRPS.CRPS import CRPS as score

    yield from zip(["CRPS, four points", "CRPS, four points (fair)", "CRPS, four points (adjusted)"], score(members, target).compute())


def xskillscore():
    import xarray
    import xskillscore as xs

    of = xarray.DataArray(members, dims="member")
    yield "CRPS, four points", xs.crps_ensemble(xarray.DataArray(target), of, dim=[])
    of = [xarray.DataArray(a, dims="time") for a in (targets, mean, std)]
    yield "CRPS, four Gaussians", xs.crps_gaussian(*of, dim="time")


def arviz_stats():
    from arviz_stats.base import array_stats

    yield "ESS", array_stats.ess(chains, chain_axis=0, draw_axis=1, method="bulk")
    yield "ESS of the mean", array_stats.ess(chains, chain_axis=0, draw_axis=1, method="mean")
    yield "R-hat", array_stats.rhat(chains, chain_axis=0, draw_axis=1, method="rank")
    yield "R-hat (split)", array_stats.rhat(chains, chain_axis=0, draw_axis=1, method="split")


out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(["quantity", "package", "version", "value"])
for package in [scikit_learn, torchmetrics, netcal, pytorch_ood, uncertainty_calibration, pycalib, mapie, relplot, scoringrules, properscoring, uncertainty_toolbox, CRPS, xskillscore, arviz_stats]:
    name = package.__name__.replace("_", "-")
    try:
        version = importlib.metadata.version(name)
        for quantity, value in package():
            out.writerow([quantity, name, version, f"{float(value):.4f}"])
    except Exception as error:
        print(f"{name} left out: {type(error).__name__}: {error}", file=sys.stderr)

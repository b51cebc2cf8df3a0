#!/usr/bin/env bash
# Expected: with as many test examples of each class the macro recall is the accuracy, as the micro recall is. So the two have
#   the same confidence interval: the binomial's, 1.96 standard errors to each side.
# Seen: the package confidenceinterval gives the same value twice, with intervals of other widths. For ten classes the macro interval
#   is 1.24 times as wide as the micro one if 90% are right, 0.69 times if 50% are, and 0.19 times if 10% are (guessing). Its own
#   bootstrap agrees with the micro one. The macro formula loses two things: the covariances of the confusion matrix, because a vector
#   is transposed where its outer product is meant, and a division by the share of the class. Macro precision does the same.
# Why it matters: intervals of macro scores are used to tell classifiers apart. Those of poor classifiers, or of hard data, look
#   more certain than they are. At 50% a "95%" interval held the truth in 81% of 1,000 simulated samples.
# Versions: confidenceinterval 1.0.5, scikit-learn 1.9.1, SciPy 1.17.1, NumPy 2.4.6, statsmodels 0.15.0, pandas 3.1.1. November 2026.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet confidenceinterval==1.0.5 scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6 statsmodels==0.15.0 pandas==3.1.1
"$work/venv/bin/python" - <<'PYTHON'
import sys
import numpy as np
from confidenceinterval import precision_score, recall_score

classes, found = 10, []
for right, wrong in (81, 1), (45, 5), (9, 9):  # of the 90 examples of a class: labelled rightly, and as each other class
    confusion = np.full((classes, classes), wrong)
    np.fill_diagonal(confusion, right)
    labels, predicted = (np.repeat(i.ravel(), confusion.ravel()) for i in np.indices(confusion.shape))
    micro, (low, high) = recall_score(labels, predicted, average="micro")
    for name, score in ("recall", recall_score), ("precision", precision_score):
        macro, (macro_low, macro_high) = score(labels, predicted, average="macro")
        found.append((macro_high - macro_low) / (high - low))
        print(f"accuracy {micro:.1f} ({low:.3f} to {high:.3f}), macro {name} {macro:.1f} ({macro_low:.3f} to {macro_high:.3f}):", end=" ")
        print(f"{found[-1]:.2f} times as wide")
    _, (boot_low, boot_high) = recall_score(labels, predicted, average="macro", method="bootstrap_percentile", n_resamples=500,
                                            random_state=np.random.RandomState(1))
    print(f"  macro recall by bootstrap: {boot_low:.3f} to {boot_high:.3f}")
    if not np.isclose((boot_high - boot_low) / (high - low), 1, atol=0.15):
        sys.exit("changed")
if not np.allclose(found, [1.24, 1.24, 0.69, 0.69, 0.19, 0.19], atol=0.006):
    sys.exit("changed")
PYTHON

"""The command line of the notebook checker: python environment/notebookcheck --help."""

import argparse
import json
import time
from pathlib import Path

import rules
import run


# Seconds after which a notebook counts as hung. On processors without AVX-512 pure Go
# takes about twice as long as with it, so that a limit for speed would be one for machines.
HUNG = 900


def limit_of(notebook, fallback):
    """The notebook's own time limit in quick mode, or the fallback, in seconds."""
    return notebook.get("metadata", {}).get("densityuncertainty", {}).get("time_limit_seconds", fallback)


def one(path, options):
    """Runs and checks one notebook, shows how it went, and returns the outcome."""
    try:
        text = path.read_text(encoding="utf-8")
        notebook = json.loads(text)
        complaints = [*rules.as_saved(text), *rules.check(notebook, rules.SOURCE_RULES + rules.TEACHING_RULES)] if options.strict else []
        limit = options.limit or limit_of(notebook, HUNG)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        outcome = run.Outcome(0, [rules.Complaint("format", f"cannot be read as a notebook: {error!r}")])
    else:
        outcome = run.run(path, options.out / "notebooks" / path.name, limit)
        outcome.complaints[:0] = complaints
    for complaint in outcome.complaints:
        print(f"    FAIL {path.name}: {complaint}", flush=True)
    return outcome


def main():
    parser = argparse.ArgumentParser(prog="notebookcheck", description="Runs notebooks without a browser and checks them.")
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK")
    parser.add_argument("--out", type=Path, required=True, help="folder for the executed notebooks, in its folder notebooks")
    parser.add_argument("--mode", choices=("quick", "full"), default="quick", help="only named in the summary")
    parser.add_argument("--limit", type=float, default=0, help="seconds for each notebook, instead of its own limit")
    parser.add_argument("--strict", action="store_true", help="check the source and the teaching limits as well")
    options = parser.parse_args()

    outcomes = []
    began = time.monotonic()
    for number, path in enumerate(options.notebooks, 1):
        print(f"notebook {number} of {len(options.notebooks)}: {path.name} ({options.mode})", flush=True)
        outcomes.append(one(path, options))

    print(f"\nNotebooks ({options.mode} mode), {time.monotonic() - began:.0f} s:")
    width = max(len(path.name) for path in options.notebooks)
    for path, outcome in zip(options.notebooks, outcomes):
        verdict = "FAIL" if outcome.complaints else "ok"
        where = f"{outcome.backend} on {outcome.device}" if outcome.backend else "backend not shown"
        without = f", cells left out: {outcome.left_out}" if outcome.left_out else ""
        print(f"  {verdict:4}  {path.name:{width}}  {outcome.seconds:6.1f} s  {where}{without}")
    failed = sum(bool(outcome.complaints) for outcome in outcomes)
    without = sum(outcome.left_out for outcome in outcomes)
    note = f"; cells left out: {without}; they say why where they stand" if without else ""
    print(f"  {len(outcomes) - failed} of {len(outcomes)} notebooks passed{note}", flush=True)
    return 1 if failed else 0

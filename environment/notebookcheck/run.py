"""Runs a notebook within a time limit, whatever it does."""

import json
import os
import re
import subprocess
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import rules

HERE = Path(__file__).resolve().parent
MARK = "DENSITYUNCERTAINTY_RUN"
BACKEND = re.compile(r"^backend (\S+) .*?, device: ([^;\n]*)", re.MULTILINE)


@dataclass
class Outcome:
    """What became of one run."""

    seconds: float
    complaints: list = field(default_factory=list)
    notebook: dict = None  # as executed; None when nothing was left
    backend: str = ""
    device: str = ""
    left_out: int = 0  # parts that the notebook left out, for want of data for example


def end_all(mark):
    """Ends every program that inherited the mark of a run in its environment.

    Parents do not tell: the kernel leads a session of its own, and what a dead
    kernel had started belongs to nobody.
    """
    for _ in range(6):  # A program that cannot be killed must not hold up the rest.
        family = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                    process.kill()
                    family.append(process)
            except psutil.Error:  # it ended meanwhile, or is another user's
                pass
        if not family:
            return
        psutil.wait_procs(family, timeout=10)


def run(source, target, limit):
    """Executes source into target, both paths, within limit seconds."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    log = target.with_suffix(".log")
    began = time.monotonic()
    late = threading.Event()
    mark = str(uuid.uuid4())
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "execute.py"), str(source), str(target)],
            stderr=stderr,
            env={**os.environ, MARK: mark},
            # Ctrl-C is to reach this process only, which then ends the others in order.
            start_new_session=True,
        )

        def stop():
            late.set()
            end_all(mark)

        timer = threading.Timer(limit, stop)
        timer.start()
        try:
            status = process.wait()
        finally:
            # Also when interrupted, and when the kernel died before its programs.
            timer.cancel()
            end_all(mark)
            process.wait()
    outcome = Outcome(time.monotonic() - began)
    if late.is_set():
        outcome.complaints.append(rules.Complaint("time-limit", f"did not end within {limit:.0f} s"))
        return outcome
    if not target.exists():
        last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["no message"]
        outcome.complaints.append(rules.Complaint("died", f"the run broke off, status {status}: {last[0]}"))
        return outcome
    outcome.notebook = json.loads(target.read_text(encoding="utf-8"))
    outcome.complaints += rules.check(outcome.notebook, rules.RUN_RULES)
    if status != 0 and not any(complaint.rule == "error" for complaint in outcome.complaints):
        outcome.complaints.insert(0, rules.Complaint("died", "the kernel died"))
    outcome.left_out = left_out(outcome.notebook)
    found = BACKEND.search(output_text(outcome.notebook))
    if found:
        outcome.backend, outcome.device = found.groups()
    return outcome


def output_text(notebook):
    """Everything the cells printed to standard output."""
    return "".join(rules.stream(cell, "stdout") + "\n" for _, cell in rules.code_cells(notebook))


def left_out(notebook):
    """How many cells say that they leave something out, as package notebook does."""
    return sum(
        any(rules.text_of(output.get("data", {}).get("text/markdown", "")).startswith("**Left out") for output in cell.get("outputs", []))
        for _, cell in rules.code_cells(notebook)
    )

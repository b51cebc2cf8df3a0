"""Runs a notebook within a time limit, whatever it does."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import rules

HERE = Path(__file__).resolve().parent
BACKEND = re.compile(r"^backend (\S+) .*?, device: ([^;\n]*)", re.MULTILINE)


@dataclass
class Outcome:
    """What became of one run."""

    seconds: float
    complaints: list = field(default_factory=list)
    notebook: dict = None  # as executed; None when nothing was left
    backend: str = ""
    device: str = ""


def end_with_descendants(process):
    """Ends a process, the kernel it started, and the programs of that kernel.

    The kernel leads a session of its own, so ending a process group would miss
    it. The family is listed before anybody dies: orphans lose their parent.
    """
    try:
        family = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    process.kill()
    for member in family:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            pass
    psutil.wait_procs(family, timeout=10)
    process.wait()


def run(source, target, limit):
    """Executes source into target, both paths, within limit seconds."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    log = target.with_suffix(".log")
    began = time.monotonic()
    late = threading.Event()
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "execute.py"), str(source), str(target)], stderr=stderr
        )

        def stop():
            late.set()
            end_with_descendants(process)

        timer = threading.Timer(limit, stop)
        timer.start()
        try:
            status = process.wait()
        except BaseException:  # interrupted: leave nothing running
            end_with_descendants(process)
            raise
        finally:
            timer.cancel()
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
    found = BACKEND.search(output_text(outcome.notebook))
    if found:
        outcome.backend, outcome.device = found.groups()
    return outcome


def output_text(notebook):
    """Everything the cells printed to standard output."""
    return "".join(rules.stream(cell, "stdout") + "\n" for _, cell in rules.code_cells(notebook))


def export(executed, page):
    """Writes an executed notebook as a page of HTML that stands alone."""
    from nbconvert import HTMLExporter  # slow to load, and not always needed

    body, _ = HTMLExporter(template_name="lab").from_filename(str(executed))
    page.parent.mkdir(parents=True, exist_ok=True)
    part = page.with_name(page.name + ".part")
    part.write_text(body, encoding="utf-8")
    os.replace(part, page)

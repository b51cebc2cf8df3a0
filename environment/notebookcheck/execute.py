"""Runs one notebook without a browser, and shows on standard output how it goes.

Meant to be run as a program of its own, so that whoever started it can end it
with all its descendants when it takes too long:

    python execute.py NOTEBOOK EXECUTED

The executed notebook is written even when a cell fails. Exit status: 0 when
every cell ran, 1 when a cell failed or the kernel died.
"""

import html
import os
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

import rules


COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def say(text):
    print(text, flush=True)


def title(cells, index):
    """The nearest heading above a cell."""
    for cell in reversed(cells[:index]):
        if cell.cell_type == "markdown":
            headings = re.findall(r"^#+\s+(.*)$", cell.source, flags=re.MULTILINE)
            if headings:
                return headings[-1].strip()
    return ""


class Client(NotebookClient):
    """A notebook client that passes on the progress bars of the cells."""

    seconds_between_lines = 2.0
    shown = 0.0

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] in ("display_data", "update_display_data"):
            content = msg["content"].get("data", {}).get("text/html", "")
            if "<progress" in content and time.monotonic() - self.shown >= self.seconds_between_lines:
                self.shown = time.monotonic()
                say("      " + html.unescape(re.sub(r"<[^>]*>", "", content)).strip())
        return super().process_message(msg, cell, cell_index)


def execute(source, target):
    notebook = nbformat.read(source, as_version=4)
    cells = notebook.cells
    total = len(rules.code_cells(notebook))
    began = {}

    def before(cell, cell_index):
        began[cell_index] = time.monotonic()
        say(f"    code cell {len(began)} of {total}  {title(cells, cell_index)}")

    def after(cell, cell_index, execute_reply):
        say(f"      {time.monotonic() - began[cell_index]:.1f} s")

    client = Client(
        notebook,
        kernel_name=rules.KERNEL,
        resources={"metadata": {"path": str(source.parent)}},
        # How long a run may take is for whoever started this program to decide.
        timeout=None,
        startup_timeout=120,
        # Compile errors as text; in a browser they are HTML.
        extra_arguments=["--raw_error"],
        on_cell_execute=before,
        on_cell_executed=after,
    )
    status = 0
    try:
        client.execute()
    except DeadKernelError:
        say("    the kernel died")
        status = 1
    except CellExecutionError:
        # The reason is in the trace of a compiler error, and on the stderr of a panic.
        failed = cells[max(began)]
        traces = ["\n".join(output.traceback) for output in failed.outputs if output.output_type == "error"]
        reason = COLOURS.sub("", rules.stream(failed, "stderr").strip() or "\n".join(traces)).splitlines()
        say("\n".join("      | " + line for line in reason[:20]))
        status = 1
    part = target.with_name(target.name + ".part")
    nbformat.write(notebook, part)
    os.replace(part, target)
    return status


if __name__ == "__main__":
    sys.exit(execute(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()))

"""Runs notebooks without a browser, and shows how they go: python environment/notebookcheck.py --help."""

import argparse
import asyncio
import contextlib
import html
import re
import signal
import sys
import time
from pathlib import Path

import nbformat
import psutil
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

KERNEL = "gonb"
MOST_CODE_LINES = 100
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def source_complaints(notebook):
    """What is wrong with a notebook as it is kept."""
    if notebook.metadata.get("kernelspec", {}).get("name") != KERNEL:
        yield f"the kernel is not {KERNEL!r}"
    lines = 0
    for number, cell in enumerate(notebook.cells, 1):
        if cell.get("outputs") or cell.get("execution_count") is not None:
            yield f"cell {number}: outputs are stored in the file; clear them before committing"
        if cell.cell_type == "code" and not cell.metadata.get("jupyter", {}).get("source_hidden") and "hide-input" not in cell.metadata.get("tags", []):
            lines += sum(1 for line in cell.source.splitlines() if line.strip())
    if not 0 < lines <= MOST_CODE_LINES:
        yield f"{lines} visible lines of code, want 1 to {MOST_CODE_LINES}; move code into a package"


class Client(NotebookClient):
    """A notebook client that shows the progress bars of cells. Ctrl-C or SIGTERM kills all kernels, with all that they have started."""

    interrupted = False  # all of them

    def __init__(self, notebook, name, **kwargs):
        super().__init__(notebook, **kwargs)
        self.name, self.shown = name, 0.0

    async def async_start_new_kernel(self, **kwargs):
        await super().async_start_new_kernel(**kwargs)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self.interrupt)

    def interrupt(self):
        Client.interrupted = True
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it ended meanwhile
                process.kill()

    def process_message(self, msg, cell, cell_index):
        content = msg["content"].get("data", {}).get("text/html", "")
        if "<progress" in content and time.monotonic() - self.shown >= 2:
            self.shown = time.monotonic()
            print(f"  {self.name}:   " + html.unescape(re.sub(r"<[^>]*>", "", content)).strip(), flush=True)
        return super().process_message(msg, cell, cell_index)


async def run(notebook, path, limit):
    """Executes a notebook in the folder of its file, each cell within limit seconds, and says what went wrong."""
    cells = [number for number, cell in enumerate(notebook.cells) if cell.cell_type == "code" and cell.source.strip()]
    began = time.monotonic()
    current = 0

    def before(cell, cell_index):
        nonlocal began, current
        began, current = time.monotonic(), cell_index
        print(f"  {path.stem}: code cell {cells.index(cell_index) + 1} of {len(cells)}", flush=True)

    def after(cell, cell_index, execute_reply):
        print(f"  {path.stem}:   {time.monotonic() - began:.1f} s", flush=True)

    client = Client(
        notebook, path.stem, kernel_name=KERNEL, resources={"metadata": {"path": str(path.parent.resolve())}}, timeout=limit, startup_timeout=120,
        extra_arguments=["--raw_error"],  # compile errors as text; in a browser they are HTML
        on_cell_execute=before, on_cell_executed=after,
    )  # fmt: skip
    try:
        await client.async_execute()
    except CellTimeoutError:
        return [f"cell {current + 1}: did not end within {limit} s"]
    except DeadKernelError:
        if Client.interrupted:
            raise asyncio.CancelledError from None
        return [f"cell {current + 1}: the kernel died"]
    except CellExecutionError:
        # The reason is on the stderr of a panic or a command, or in the trace of a compile error.
        outputs = notebook.cells[current].outputs
        said = [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
        said += ["\n".join(output.traceback) for output in outputs if output.output_type == "error"]
        return [f"cell {current + 1}: " + "\n      | ".join(COLOURS.sub("", "\n".join(said)).strip().splitlines()[:20])]
    return []


async def one(path, options):
    """Runs and checks one notebook, and returns whether all is well."""
    target = options.out / "notebooks" / path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        notebook = nbformat.read(path, as_version=4)
    except (OSError, ValueError, KeyError, AttributeError) as error:
        complaints = [f"cannot be read as a notebook: {error!r}"]
    else:
        complaints = list(source_complaints(notebook)) if options.strict else []
        complaints += await run(notebook, path, options.limit or None)
        nbformat.write(notebook, target)
    for complaint in complaints:
        print(f"  FAIL {path.name}: {complaint}", flush=True)
    return not complaints


async def main():
    parser = argparse.ArgumentParser(description="Runs notebooks without a browser and checks them.")
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK")
    parser.add_argument("--out", type=Path, required=True, help="folder for the executed notebooks, in its folder notebooks")
    parser.add_argument("--limit", type=int, default=900, help="seconds after which a cell counts as hung (900), 0 for never")
    parser.add_argument("--strict", action="store_true", help="check the source as well")
    parser.add_argument("--at-once", type=int, default=1, help="how many notebooks run at once (1)")
    options = parser.parse_args()
    turn = asyncio.Semaphore(options.at_once)

    async def timed(number, path):
        async with turn:
            if Client.interrupted:
                raise asyncio.CancelledError
            print(f"notebook {number} of {len(options.notebooks)}: {path.name}", flush=True)
            began = time.monotonic()
            return await one(path, options), time.monotonic() - began, path.name

    summary = await asyncio.gather(*(timed(number, path) for number, path in enumerate(options.notebooks, 1)))
    print("\nNotebooks:")
    for fine, seconds, name in summary:
        print(f"  {'ok' if fine else 'FAIL':4}  {seconds:6.1f} s  {name}")
    passed = sum(fine for fine, _, _ in summary)
    print(f"  {passed} of {len(summary)} notebooks passed", flush=True)
    return 0 if passed == len(summary) else 1


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("interrupted", file=sys.stderr)
        sys.exit(130)

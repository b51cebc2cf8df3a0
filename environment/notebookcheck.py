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

TAGS, COLOURS = re.compile(r"<[^>]*>"), re.compile(r"\x1b\[[0-9;]*m")


class Client(NotebookClient):
    """Runs a notebook in its folder and shows how it goes. Ctrl-C or SIGTERM kills all kernels, with all that they have started."""

    interrupted = False  # all of them

    def __init__(self, notebook, path, limit):
        super().__init__(
            notebook, kernel_name="gonb", resources={"metadata": {"path": str(path.parent.resolve())}}, timeout=limit, startup_timeout=120,
            extra_arguments=["--raw_error"],  # compile errors as text; in a browser they are HTML
            on_cell_execute=self.before, on_cell_executed=self.after,
        )  # fmt: skip
        self.name, self.shown = path.stem, 0.0

    async def async_start_new_kernel(self, **kwargs):
        await super().async_start_new_kernel(**kwargs)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self.interrupt)

    def interrupt(self):
        Client.interrupted = True
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it ended meanwhile
                process.kill()

    def before(self, cell, cell_index):
        self.cell, self.number, self.began = cell, cell_index + 1, time.monotonic()
        print(f"  {self.name}: cell {self.number} of {len(self.nb.cells)}", flush=True)

    def after(self, **_):
        print(f"  {self.name}:   {time.monotonic() - self.began:.1f} s", flush=True)

    def process_message(self, msg, cell, cell_index):
        content = msg["content"].get("data", {}).get("text/html", "")
        if "<progress" in content and time.monotonic() - self.shown >= 2:
            self.shown = time.monotonic()
            print(f"  {self.name}:   " + html.unescape(TAGS.sub("", content)).strip(), flush=True)
        return super().process_message(msg, cell, cell_index)

    async def complaint(self):
        """Runs the notebook and returns what went wrong, or nothing."""
        try:
            await self.async_execute()
        except CellTimeoutError:
            return f"cell {self.number}: did not end within {self.timeout} s"
        except DeadKernelError:
            if Client.interrupted:
                raise asyncio.CancelledError from None
            return f"cell {self.number}: the kernel died"
        except CellExecutionError:
            # The reason is on the stderr of a panic or a command, or in the trace of a compile error.
            outputs = self.cell.outputs
            said = [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
            said += ["\n".join(output.traceback) for output in outputs if output.output_type == "error"]
            return f"cell {self.number}: " + "\n      | ".join(COLOURS.sub("", "\n".join(said)).strip().splitlines()[:20])


async def main():
    parser = argparse.ArgumentParser(description="Runs notebooks without a browser.")
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK")
    parser.add_argument("--out", type=Path, required=True, help="folder for the executed notebooks, in its folder notebooks")
    parser.add_argument("--limit", type=int, default=900, help="seconds after which a cell counts as hung (900), 0 for never")
    parser.add_argument("--at-once", type=int, default=1, help="how many notebooks run at once (1)")
    options = parser.parse_args()
    turn = asyncio.Semaphore(options.at_once)

    async def run(number, path):
        """Runs one notebook, and returns its line of the summary."""
        async with turn:
            if Client.interrupted:
                raise asyncio.CancelledError
            print(f"notebook {number} of {len(options.notebooks)}: {path.name}", flush=True)
            began = time.monotonic()
            target = options.out / "notebooks" / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            try:
                notebook = nbformat.read(path, as_version=4)
            except (OSError, ValueError, KeyError, AttributeError) as error:
                complaint = f"cannot be read as a notebook: {error!r}"
            else:
                complaint = await Client(notebook, path, options.limit or None).complaint()
                nbformat.write(notebook, target)
            if complaint:
                print(f"  FAIL {path.name}: {complaint}", flush=True)
            return f"  {'FAIL' if complaint else 'ok':4}  {time.monotonic() - began:6.1f} s  {path.name}"

    summary = await asyncio.gather(*(run(number, path) for number, path in enumerate(options.notebooks, 1)))
    passed = sum(line.startswith("  ok") for line in summary)
    print("\nNotebooks:", *summary, f"  {passed} of {len(summary)} notebooks passed", sep="\n", flush=True)
    return 0 if passed == len(summary) else 1


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("interrupted", file=sys.stderr)
        sys.exit(130)

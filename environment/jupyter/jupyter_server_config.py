"""How ./environment/lab sets up JupyterLab, which reads this file at its start.

Settings of the page itself are in labconfig: no question about news, and time
for the first completion, while the language server is still loading.
"""

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import nbformat
import psutil
from jupyter_server.serverapp import ServerApp
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager

TEMPLATE = Path(__file__).with_name("template.ipynb")
MARK = "DENSITYUNCERTAINTY_LAB"
UMASK = os.umask(0o077)
os.umask(UMASK)


def plain(notebook):
    """A notebook without the marks of trust, which are kept elsewhere."""
    copy = json.loads(json.dumps(notebook))
    for cell in copy.get("cells", []):
        cell.get("metadata", {}).pop("trusted", None)
    return copy


class Notebooks(AsyncLargeFileManager):
    """The files of JupyterLab. A new notebook begins as the template, and one
    that is saved as it was opened keeps its file, byte for byte. What a kernel
    says of its language, down to the version, is of this machine: a notebook
    keeps what it has of it."""

    async def new(self, model=None, path=""):
        model = dict(model or {})
        kind = model.get("type", "notebook" if path.endswith(".ipynb") else "file")
        if kind == "notebook" and "content" not in model:
            model.update(type="notebook", format="json", content=nbformat.read(TEMPLATE, as_version=4))
        return await super().new(model, path)

    async def save(self, model, path=""):
        if model.get("type") == "notebook" and model.get("content") and await self.file_exists(path):
            there = await self.get(path, type="notebook")
            if language := there["content"]["metadata"].get("language_info"):
                model["content"]["metadata"]["language_info"] = language
            if plain(there["content"]) == plain(model["content"]):
                return {**there, "content": None, "format": None}
        return await super().save(model, path)

    @contextlib.contextmanager
    def atomic_writing(self, os_path, *args, text=True, encoding="utf-8", **kwargs):
        """Writes beside the file, and renames: who is killed leaves the old file or the new one, and never a part."""
        target = Path(os_path).resolve()
        if not os.access(target.parent, os.W_OK):  # a file may still be written to
            with super().atomic_writing(os_path, *args, text=text, encoding=encoding, **kwargs) as file:
                yield file
            return
        with self.perm_to_403(os_path):
            handle, part = tempfile.mkstemp(prefix=".~", dir=target.parent)
            try:
                with open(handle, "w" if text else "wb", **({"encoding": encoding, "newline": "\n"} if text else {})) as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                if target.exists():
                    shutil.copymode(target, part)
                else:
                    os.chmod(part, 0o666 & ~UMASK)
                os.replace(part, target)
            except BaseException:
                os.unlink(part)
                raise


def end(server, *_):
    """Ends the server, and its kernels in order, at the first Ctrl-C. Further ones change nothing."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    server.log.critical("Ending JupyterLab and its kernels ...")
    server.stop(from_signal=True)


def init_signal(server, original=ServerApp.init_signal):
    """Sets the handler of Ctrl-C where there is no terminal, too."""
    original(server)
    signal.signal(signal.SIGINT, server._handle_sigint)


ServerApp._handle_sigint = ServerApp._signal_stop = end
ServerApp.init_signal = init_signal


def end_kernels():
    """Ends kernels, their cells and their language servers that were left behind: those of this server, and of servers that were killed."""
    for process in psutil.process_iter(["name"]):
        try:
            mark = process.environ().get(MARK, "") if process.info["name"].startswith(("gonb", "gopls")) else ""
            if mark == str(os.getpid()) or (mark.isdecimal() and not psutil.pid_exists(int(mark))):
                process.kill()
        except psutil.Error:  # it ended meanwhile, or is another user's
            pass


def set_up_rest():
    """Makes, behind the notebooks, what they open without: the language server. It ends with the server, and then goes on with the next."""
    log = Path(os.environ["DENSITYUNCERTAINTY_CHECKOUT"]) / ".env" / "log" / "behind.log"
    with log.open("wb") as output:
        setup = TEMPLATE.parents[1] / "setup"
        process = subprocess.Popen(["nice", setup], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)

    def end_rest():
        if process.poll() is None:
            for child in [*psutil.Process(process.pid).children(recursive=True), process]:
                with contextlib.suppress(psutil.Error, OSError):
                    child.kill()
            process.wait()

    atexit.register(end_rest)


# Kernels, and what they start, inherit the mark. Jupyter may read this file twice.
if os.environ.get(MARK) != str(os.getpid()):
    os.environ[MARK] = str(os.getpid())
    end_kernels()
    atexit.register(end_kernels)
    if "DENSITYUNCERTAINTY_CHECKOUT" in os.environ:
        set_up_rest()

c = get_config()  # noqa: F821 (Jupyter defines it)
c.ServerApp.contents_manager_class = Notebooks
c.MultiKernelManager.default_kernel_name = "gonb"
c.KernelSpecManager.ensure_native_kernel = False
c.KernelSpecManager.allowed_kernelspecs = {"gonb"}
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"

"""The page live.html, on which the method runs in the browser, made of the sources in the folder live and the compiled program."""

import base64
import gzip
import json
import shutil
from pathlib import Path

HERE = Path(__file__).resolve().parent / "live"


def write(program, target):
    """Writes the page into the folder of pages.

    program is a folder with environment/cmd/live as WebAssembly, live.wasm, and the file of the
    Go distribution by which a browser runs it, wasm_exec.js. A page that is a file can load
    neither, so both become text in a script.
    """
    static = target / "_static" / "live"
    static.mkdir(parents=True)
    shutil.copy(HERE / "live.html", target / "live.html")
    for name in ("live.css", "points.js", "plots.js", "program.js", "live.js"):
        shutil.copy(HERE / name, static / name)
    worker = (program / "wasm_exec.js").read_text(encoding="utf-8") + (HERE / "worker.js").read_text(encoding="utf-8")
    packed = gzip.compress((program / "live.wasm").read_bytes(), compresslevel=9, mtime=0)
    data = {"worker": worker, "wasm": base64.b64encode(packed).decode("ascii")}
    (static / "program-data.js").write_text(f"const PROGRAM = {json.dumps(data)};\n", encoding="utf-8")

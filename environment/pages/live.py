"""The page live.html, on which the method runs in the browser, made of the sources in the folder live and the compiled program."""

import base64
import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent / "live"


def write(program, target):
    """Writes the page into the folder of pages.

    program is a folder with figures/cmd/live as WebAssembly, live.wasm, and the file of the
    Go distribution by which a browser runs it, wasm_exec.js. A page that is a file can load
    neither, so both become text in a script.
    """
    static = target / "_static" / "live"
    static.mkdir(parents=True)
    shutil.copy(HERE / "live.html", target / "live.html")
    for name in ("live.css", "stored.js", "points.js", "plots.js", "program.js", "live.js"):
        shutil.copy(HERE / name, static / name)
    worker = (program / "wasm_exec.js").read_text(encoding="utf-8") + (HERE / "worker.js").read_text(encoding="utf-8")
    packed = gzip.compress((program / "live.wasm").read_bytes(), compresslevel=9, mtime=0)
    data = {"worker": worker, "wasm": base64.b64encode(packed).decode("ascii")}
    (static / "program-data.js").write_text(f"const PROGRAM = {json.dumps(data)};\n", encoding="utf-8")


def store(program):
    """Writes what the page shows before anything is trained: bands of each preset, and HMC's, and maps of two moons. program is figures/cmd/live, compiled for this machine."""

    def ask(request):
        done = subprocess.run([program], input=json.dumps(request), capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    def few(values):
        return [float(f"{v:.4g}") for v in values[::4]]

    presets = {}
    for preset in ("gap", "side", "thin", "outlier"):
        points = ask({"points": {"seed": 0, "preset": preset}})
        presets[preset] = {"points": points}
        for method in ("density", "locations", "mfvi", "rank1", "mcdropout", "ensemble", "hmc"):
            steps = 1000 if method == "hmc" else 4000
            band = ask({"train": {"method": method, **points, "width": 50, "initStd": 0.01, "steps": steps, "pretrainSteps": 2000, "samples": 1000}})["band"]
            for name in ("x", "mean", "low", "high", "std"):
                band[name] = few(band[name])
            band["functions"] = [few(function) for function in band["functions"]]
            presets[preset][method] = band
            print(preset, method, band["ratio"], flush=True)
    points = ask({"points": {"seed": 0, "preset": "moons"}})
    presets["moons"] = {"points": points}
    for method in ("density", "locations", "mfvi", "rank1", "mcdropout", "ensemble"):
        shown = ask({"train": {"method": method, **points, "width": 50, "initStd": 0.01, "steps": 1000, "pretrainSteps": 500, "samples": 100}})["map"]
        presets["moons"][method] = {**shown, "entropy": [round(v, 2) for v in shown["entropy"]]}
    (HERE / "stored.js").write_text(f"// Made by environment/pages/live.py.\nconst STORED = {json.dumps(presets, separators=(',', ':'))};\n", encoding="utf-8")


if __name__ == "__main__":
    store(sys.argv[1])

"""Tests of the notebook checker: one notebook that passes, and bad ones, at least one for every rule.

The notebooks that have to be run for that need the kernel, so run this through
./environment/test.
"""

import contextlib
import copy
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import nbformat
import psutil

import cli
import rules
import run

FOREVER = '%%\nfmt.Print("x")\ntime.Sleep(time.Hour)'
HELLO = '%%\nfmt.Println("backend go:x (why), device: Some CPU, 2 cores; a note")'


def code(source, **fields):
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None, **fields}


def prose(source):
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def notebook(*cells, kernel="gonb"):
    return {
        "nbformat": 4,
        "nbformat_minor": 4,
        "metadata": {"kernelspec": {"name": kernel, "display_name": kernel, "language": "go"}},
        "cells": list(cells),
    }


def good():
    return notebook(prose("# Title\n" + "word " * 20), code(HELLO))


def saved(document):
    """The file that Jupyter makes of a notebook."""
    return nbformat.writes(nbformat.from_dict(document)) + "\n"


def names(complaints):
    return [complaint.rule for complaint in complaints]


class Source(unittest.TestCase):
    def complaints(self, notebook):
        return rules.check(notebook, rules.SOURCE_RULES + rules.TEACHING_RULES)

    def test_good(self):
        self.assertEqual(self.complaints(good()), [])

    def test_kernelspec(self):
        bad = good()
        bad["metadata"]["kernelspec"]["name"] = "python3"
        self.assertEqual(names(self.complaints(bad)), ["kernelspec"])
        del bad["metadata"]["kernelspec"]
        self.assertEqual(names(self.complaints(bad)), ["kernelspec"])

    def test_committed_output(self):
        for fields in ({"outputs": [{"output_type": "stream", "name": "stdout", "text": "x"}]}, {"execution_count": 1}):
            bad = good()
            bad["cells"][1].update(fields)
            self.assertEqual(names(self.complaints(bad)), ["committed-output"], fields)
            self.assertEqual(self.complaints(bad)[0].cell, 2)

    def test_as_saved(self):
        text = saved(good())
        self.assertEqual(list(rules.as_saved(text)), [])
        for other in (text + "\n", text.replace(' "nbformat": 4,', ' "nbformat":4,'), json.dumps(good(), indent=1) + "\n"):
            self.assertEqual(names(rules.as_saved(other)), ["as-saved"], other)

    def test_absolute_path(self):
        for text in ("/home/me/x", 'os.Open("/data1/x.csv")', "see /tmp/figures", r"C:\Users\me", "~/checkout", "!ls /root/x"):
            bad = good()
            bad["cells"][1]["source"] += " // " + text
            self.assertEqual(names(self.complaints(bad)), ["absolute-path"], text)
        for text in ("a/b", "../out/x.svg", "https://example.org/home/x", '"/"', '"%d/%d"', "kg/m", "x /tmpl", "and/or", 'GET "/x"', "$GONB_DIR/tmp/x"):
            fine = good()
            fine["cells"][1]["source"] += " // " + text
            self.assertEqual(self.complaints(fine), [], text)

    def test_dot_import(self):
        for text in ('import . "fmt"', 'import (\n\t. "fmt"\n)', "import . `fmt`"):
            bad = good()
            bad["cells"][1]["source"] = text
            self.assertIn("dot-import", names(self.complaints(bad)), text)

    def test_set_up_line(self):
        for text in ("!*go work init . ..", "%noautoget", "%goworkfix", "!*rm -f go.work && go work init ."):
            bad = good()
            bad["cells"][1]["source"] = text + "\n" + HELLO
            self.assertIn("set-up-line", names(self.complaints(bad)), text)
        fine = good()
        fine["cells"][1]["source"] = "!*with-network go get example.com/x\n" + HELLO + " // go work"
        self.assertNotIn("set-up-line", names(self.complaints(fine)))

    def test_code_lines(self):
        bad = notebook(prose("word " * 1000), code("x()\n\n" * 101))
        self.assertEqual(names(self.complaints(bad)), ["code-lines"])
        self.assertEqual(self.complaints(notebook(prose("word " * 1000), code("x()\n\n" * 100))), [])
        self.assertEqual(names(self.complaints(notebook(prose("word")))), ["code-lines"])

    def test_hidden_code_is_not_counted(self):
        for metadata in ({"jupyter": {"source_hidden": True}}, {"tags": ["hide-input"]}):
            self.assertEqual(rules.visible_code_lines(notebook(code("x()\n" * 200, metadata=metadata), code("y()"))), 1)

    def test_words_per_line(self):
        for count, wanted in ((79, ["words-per-line"]), (80, []), (155, []), (156, ["words-per-line"])):
            self.assertEqual(names(self.complaints(notebook(prose("word " * count), code("x()\n" * 10)))), wanted, count)

    def test_words(self):
        text = "# One two\nthree $x^2 + y$ [five six](http://a.b/c) don't <b>eight</b>\n```go\nnot this\n```\n$$ten \\\\ x$$ <!-- no -->"
        self.assertEqual(rules.words(notebook(prose(text), code("not this"))), 9)


def still_running(mark):
    """The programs that inherited a mark in their environment, after a moment to end."""
    for _ in range(50):
        left = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("NOTEBOOKCHECK_TEST") == mark and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(process.cmdline())
            except psutil.Error:
                pass
        if not left:
            break
        time.sleep(0.1)
    return left


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def outcome(self, document, limit=120):
        source = self.folder / "n.ipynb"
        source.write_text(json.dumps(document))
        with contextlib.redirect_stdout(io.StringIO()):
            return run.run(source, self.folder / "out" / "n.ipynb", limit)

    def test_good(self):
        outcome = self.outcome(good())
        self.assertEqual(outcome.complaints, [])
        self.assertEqual((outcome.backend, outcome.device), ("go:x", "Some CPU, 2 cores"))
        self.assertGreater(outcome.seconds, 0)

    def test_panic(self):
        outcome = self.outcome(notebook(code('%%\npanic("deliberate")'), code(HELLO)))
        self.assertEqual(names(outcome.complaints), ["error", "not-run"])
        self.assertEqual([complaint.cell for complaint in outcome.complaints], [1, 2])
        self.assertEqual(outcome.complaints[0].text, "panic: deliberate")

    def test_error_of_a_graph(self):
        """It names the line that builds the node, not the one that executes the graph, and says everything once."""
        source = """import (
	"github.com/gomlx/gomlx/core/graph"
	"densityuncertainty/environment"
)

func product(a, b *graph.Node) *graph.Node {
	return graph.Mul(a, b)
}

%%
backend, _, err := environment.Open()
fmt.Println(err)
graph.MustExecOnce(backend, product, [][]float32{{1, 2, 3}}, [][]float32{{1, 2}, {3, 4}})"""
        outcome = self.outcome(notebook(code(source)))
        self.assertEqual(names(outcome.complaints), ["error"])
        self.assertRegex(outcome.complaints[0].text, r"^panic: dimension of axis")
        said = rules.stream(outcome.notebook["cells"][0], "stderr")
        self.assertIn("Cell [1] Line 7 ]]", said)
        self.assertIn(": return graph.Mul(a, b)", said)
        self.assertNotIn("goroutine", said)
        self.assertEqual((said.count("dimension of axis"), said.count("Cell [1]")), (1, 1))

    def test_endless_output(self):
        outcome = self.outcome(notebook(code('%%\nfor i := range 200000 {\n\tfmt.Println("line", i)\n}\nfmt.Fprintln(os.Stderr, "the end")')))
        self.assertEqual(outcome.complaints, [])
        said = rules.stream(outcome.notebook["cells"][0], "stdout")
        self.assertLess(said.count("\n"), 10010)
        self.assertEqual(said.count("The output is cut here"), 1)
        self.assertIn("the end", rules.stream(outcome.notebook["cells"][0], "stderr"))

    def test_compile_error(self):
        outcome = self.outcome(notebook(code("%%\nthere is no such statement")))
        self.assertEqual(names(outcome.complaints), ["error"])
        self.assertNotIn("exit status", outcome.complaints[0].text)

    def test_failed_command(self):
        for source in ("!false", "%%bash\nexit 3"):
            outcome = self.outcome(notebook(code(source)))
            self.assertEqual(names(outcome.complaints), ["exit-status"], source)

    def test_wrong_kernel_still_runs_here(self):
        # Which kernel runs is the checker's choice, so the file's is a rule of its own.
        bad = good()
        bad["metadata"]["kernelspec"]["name"] = "nonsense"
        self.assertEqual(self.outcome(bad).complaints, [])

    def test_time_limit(self):
        began = time.monotonic()
        mark = str(self.folder)
        with mock.patch.dict(os.environ, NOTEBOOKCHECK_TEST=mark):
            outcome = self.outcome(notebook(code(FOREVER)), limit=10)
        self.assertEqual(names(outcome.complaints), ["time-limit"])
        self.assertLess(time.monotonic() - began, 40)
        self.assertEqual(still_running(mark), [])

    def test_killed_kernel(self):
        mark = str(self.folder)
        with mock.patch.dict(os.environ, NOTEBOOKCHECK_TEST=mark):
            outcome = self.outcome(notebook(code("!kill -9 $PPID"), code(HELLO)), limit=60)
        self.assertEqual(still_running(mark), [])
        self.assertEqual(names(outcome.complaints)[0], "died", outcome)

    def test_not_a_notebook(self):
        self.assertEqual(names(self.outcome({"cells": 3}).complaints), ["died"])


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def program(self, documents, *arguments):
        paths = []
        for name, document in documents.items():
            paths.append(self.folder / name)
            paths[-1].write_text(document if isinstance(document, str) else saved(document))
        printed = io.StringIO()
        argv = ["notebookcheck", *map(str, paths), "--out", str(self.folder / "out"), *arguments]
        with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(printed):
            return cli.main(), printed.getvalue()

    def test_good(self):
        status, printed = self.program({"good.ipynb": good()}, "--strict")
        self.assertEqual(status, 0, printed)
        self.assertIn("1 of 1 notebooks passed", printed)
        self.assertIn("go:x on Some CPU, 2 cores", printed)
        self.assertIn("Some CPU", (self.folder / "out" / "notebooks" / "good.ipynb").read_text())

    def test_what_was_left_out_is_counted(self):
        leaving = 'import "densityuncertainty/environment/notebook"\n%%\nnotebook.Markdown("**Left out for want of data:** x")'
        status, printed = self.program({"few.ipynb": notebook(code(HELLO), code(leaving))})
        self.assertEqual(status, 0, printed)
        self.assertIn("2 cores, cells left out: 1", printed)
        self.assertIn("1 of 1 notebooks passed; cells left out: 1", printed)

    def test_source_rules_only_when_strict(self):
        bad = copy.deepcopy(good())
        bad["cells"][1]["execution_count"] = 1
        self.assertEqual(self.program({"bad.ipynb": bad})[0], 0)
        status, printed = self.program({"bad.ipynb": bad}, "--strict")
        self.assertEqual(status, 1)
        self.assertIn("FAIL bad.ipynb: cell 2: an execution count", printed)

    def test_one_bad_of_two(self):
        status, printed = self.program({"broken.ipynb": "{", "good.ipynb": good()})
        self.assertEqual(status, 1)
        self.assertIn("cannot be read as a notebook", printed)
        self.assertIn("1 of 2 notebooks passed", printed)

    def test_own_time_limit(self):
        slow = notebook(code("%%\ntime.Sleep(time.Hour)"))
        slow["metadata"]["densityuncertainty"] = {"time_limit_seconds": 5}
        status, printed = self.program({"slow.ipynb": slow})
        self.assertEqual(status, 1)
        self.assertIn("did not end within 5 s", printed)


class Interruption(unittest.TestCase):
    def test_nothing_is_left_running(self):
        checker = Path(__file__).resolve().parent
        for number in (signal.SIGINT, signal.SIGTERM):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "slow.ipynb"
                path.write_text(json.dumps(notebook(code("%%\nfmt.Print(1)"), code(FOREVER))))
                process = subprocess.Popen(
                    [sys.executable, checker, path, "--out", folder],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "NOTEBOOKCHECK_TEST": folder},
                    # A shell starts background jobs with Ctrl-C ignored, which children inherit.
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                )
                for line in process.stdout:
                    if "code cell 2" in line:
                        break
                self.assertNotEqual(still_running(folder), [])
                process.send_signal(number)
                _, message = process.communicate(timeout=30)
                self.assertEqual((process.returncode, message.strip()), (130, "interrupted"))
                self.assertEqual(still_running(folder), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)

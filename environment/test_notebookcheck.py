"""Tests of what runs notebooks.

The notebooks that are run need the kernel, so run this through ./environment/test --all.
"""

import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import nbformat
import psutil
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

import notebookcheck

HERE = Path(notebookcheck.__file__).parent
HELLO = '%%\nfmt.Println("hello")'
FOREVER = '%%\nfmt.Print("x")\ntime.Sleep(time.Hour)'


def notebook(*sources):
    return new_notebook(cells=[new_markdown_cell("# Title"), *map(new_code_cell, sources)])


class Run(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def start(self, *documents, options=()):
        paths = [self.folder / f"{number}.ipynb" for number in range(len(documents))]
        for path, document in zip(paths, documents):
            path.write_text(document if isinstance(document, str) else nbformat.writes(document))
        command = [sys.executable, notebookcheck.__file__, *paths, "--out", self.folder / "out", *options]
        # A shell starts background jobs with Ctrl-C ignored, which children inherit.
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def check(self, *documents, **options):
        process = self.start(*documents, **options)
        printed, _ = process.communicate(timeout=300)
        return process.returncode, printed

    def test_good(self):
        """The template of a new notebook works in any folder."""
        status, printed = self.check((HERE / "jupyter" / "template.ipynb").read_text())
        self.assertEqual((status, "1 of 1 notebooks passed" in printed), (0, True), printed)
        self.assertIn("308 examples of 6 inputs", (self.folder / "out" / "notebooks" / "0.ipynb").read_text())

    def test_bad(self):
        """Each fails by itself; the others go on."""
        endless = '%%\nfor i := range 200000 {\n\tfmt.Println("line", i)\n}\nfmt.Fprintln(os.Stderr, "the end")'
        status, printed = self.check(
            notebook('%%\npanic("deliberate")', HELLO), notebook("%%\nfmt.Printn(1)"), notebook("!false"), notebook(FOREVER),
            "{", notebook(endless), notebook("%tset"), notebook("%%\na()\n%%"), notebook("var s = `\n!false\n`\n%%\nfmt.Println(s)"), options=["--limit=30"],
        )  # fmt: skip
        self.assertEqual(status, 1, printed)
        for says in (
            "FAIL 0.ipynb: cell 2: panic: deliberate",
            "fmt has no Printn; it has Print, Printf, Println",
            "FAIL 6.ipynb: cell 2: unknown command %tset",
            "FAIL 7.ipynb: cell 2: line 3: a cell is one program, and line 1 has begun it",
            "FAIL 2.ipynb: cell 2: !false: exit status 1",
            "FAIL 3.ipynb: cell 2: did not end within 30 s",
            "FAIL 4.ipynb: cannot be read as a notebook",
            "2 of 9 notebooks passed",
        ):
            self.assertIn(says, printed)
        said = (self.folder / "out" / "notebooks" / "5.ipynb").read_text()
        self.assertEqual((said.count("The output is cut here"), said.count("the end")), (1, 2))

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
        _, said = self.check(notebook(source))
        self.assertIn("Cell [1] Line 7 ]]", said)
        self.assertIn(": return graph.Mul(a, b)", said)
        self.assertNotIn("goroutine", said)
        self.assertEqual((said.count("dimension of axis"), said.count("Cell [1]")), (1, 1))

    def test_interruption(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start(notebook(HELLO, FOREVER), notebook(HELLO))
            for line in process.stdout:
                if "cell 3" in line:
                    break
            started = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(number)
            printed, message = process.communicate(timeout=120)
            self.assertEqual((process.returncode, message.strip(), "notebook 2" in printed), (130, "interrupted", False))
            _, left = psutil.wait_procs(started, timeout=5)
            self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)

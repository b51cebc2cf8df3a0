"""Tests of the commands of this folder: settings, arguments, and JupyterLab.

JupyterLab has to be set up for that, so run this through ./environment/test.
"""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import urllib.request
from pathlib import Path

import psutil

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def bash(self, commands, **variables):
        """Runs commands in a shell that has sourced lib.sh, with the state in a folder of the test's own."""
        script = f'set -euo pipefail; source "{HERE}/lib.sh"; state="{self.folder}/state"; {commands}'
        environ = {**os.environ, **variables}
        return subprocess.run(["bash", "-c", script], check=False, capture_output=True, text=True, env=environ, cwd=ROOT, timeout=300)


class Settings(Scripts):
    """What the user has set must not change what is built, installed or run."""

    def variables(self, **variables):
        done = self.bash("enter; env -0", **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return dict(line.split("=", 1) for line in done.stdout.split("\0") if "=" in line)

    def test_variables(self):
        gone = {"PYTHONPATH": "/x", "PYTHONSTARTUP": "/x", "PYTHONHOME": "/x", "JUPYTER_PATH": "/x"}
        now = self.variables(GOFLAGS="-toolexec=/bin/false -mod=mod -tags=evil", GOWORK="/somewhere/go.work", GO111MODULE="off", **gone)
        self.assertEqual([flag for flag in now["GOFLAGS"].split() if flag not in ("-tags=noxla", "-buildvcs=false")], ["-ldflags=-w"])
        self.assertEqual((now["GOWORK"], now["GO111MODULE"], gone.keys() & now.keys()), ("off", "on", set()))

    def test_flags_of_the_users_file(self):
        """An empty variable would give way to what go env -w has written."""
        settings = self.folder / "goenv"
        settings.write_text("GOFLAGS=-toolexec=/bin/false\n")
        now = self.variables(GOENV=str(settings), GOFLAGS="")
        self.assertNotIn("toolexec", now["GOFLAGS"])
        done = self.bash('GOFLAGS=$plain_flags go build -o /dev/null ./environment/atomicfile; echo built', GOENV=str(settings), CGO_ENABLED="0")
        self.assertEqual(done.stdout, "built\n", done.stderr)

    def tool(self, name, script):
        """A program that is found before the one of that name."""
        path = self.folder / "tools" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return f"{path.parent}{os.pathsep}{os.environ['PATH']}"

    def test_an_older_go_that_downloads_a_newer_one(self):
        """Kernels build outside of the checkout, where nothing but the variable asks for the newer."""
        real = shutil.which("go")
        for own, wants in (("go1.26.8", "go1.27.0"), ("go1.27.0", "")):
            with self.subTest(own):
                path = self.tool("go", f'case "$*" in\n*GOVERSION) [ "$GOTOOLCHAIN" = local ] && echo {own} || echo go1.27.0 ;;\n*) exec {real} "$@" ;;\nesac')
                done = self.bash('check_go; printf %s "${GOTOOLCHAIN:-}"', PATH=path, GOTOOLCHAIN="")
                self.assertEqual((done.stdout, done.returncode), (wants, 0), done.stderr)

    def test_an_older_go_that_downloads_nothing(self):
        """It is made to, unless the variable forbids it."""
        script = 'case "$GOTOOLCHAIN" in\nlocal | "") echo running go 1.26.8 >&2; exit 1 ;;\n*) echo go: downloading go1.27.0 >&2; echo go1.27.0 ;;\nesac'
        path = self.tool("go", script)
        done = self.bash('check_go; printf %s "$go_version"', PATH=path, GOTOOLCHAIN="")
        self.assertEqual((done.stdout, done.returncode), ("go1.27.0", 0), done.stderr)
        done = self.bash("check_go", PATH=path, GOTOOLCHAIN="local")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"running go 1.26.8\n.* or newer is needed")

    def test_versions_that_are_named_twice(self):
        """go.mod names them; the others cannot read it."""
        named = lambda pattern, file: re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)[1]
        wanted = named(r"^go (\S+)$", "go.mod")
        self.assertEqual(named(r"^go (\S+)$", "environment/tools/go.mod"), wanted)
        self.assertEqual(named(r"^You need Go (\S+) and Python", "README.md"), wanted)
        self.assertTrue(named(r"^FROM golang:(\S+)-bookworm", "environment/Dockerfile").startswith(wanted))
        gonb = r"janpfeifer/gonb (v\S+)"
        self.assertEqual(named(gonb, "environment/tools/go.mod"), named(gonb, "go.mod"), "kernel and gonbui differ")

    def test_a_checkout_of_another_user(self):
        """Git says nothing of it, and Go would build no program."""
        self.assertNotIn("-buildvcs=false", self.variables()["GOFLAGS"].split())
        path = self.tool("git", "echo 'fatal: detected dubious ownership' >&2; exit 128")
        self.assertIn("-buildvcs=false", self.variables(PATH=path)["GOFLAGS"].split())

    def test_downloads_in_a_terminal_of_the_server(self):
        self.assertEqual(self.variables(GOPROXY="off", DENSITYUNCERTAINTY_GOPROXY="https://example.com")["GOPROXY"], "https://example.com")
        self.assertEqual(self.variables(GOPROXY="off", DENSITYUNCERTAINTY_GOPROXY="")["GOPROXY"], "off")

    def test_a_checkout_of_windows(self):
        """Git leaves line ends as they are, whatever it is set to."""
        files = ["environment/lab", "go.mod", "environment/jupyter/template.ipynb"]
        subprocess.run(["git", "-c", "core.autocrlf=true", "checkout-index", f"--prefix={self.folder}/", *files], cwd=ROOT, check=True)
        for file in files:
            self.assertEqual((self.folder / file).read_bytes(), (ROOT / file).read_bytes(), file)

    def kernel(self, commands="register_kernel", **variables):
        state = self.folder / "state"
        (state / "venv" / "bin").mkdir(parents=True)
        (state / "venv" / "bin" / "python").symlink_to(sys.executable)
        (state / "jupyter" / "runtime").mkdir(parents=True, mode=0o755)
        done = self.bash(f"enter; {commands}", **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return state, json.loads(next(self.folder.rglob("kernels/gonb/kernel.json")).read_text())

    def test_the_token_is_its_owners(self):
        state, _ = self.kernel()
        self.assertEqual(stat.S_IMODE((state / "jupyter" / "runtime").stat().st_mode), 0o700)

    def test_the_kernel_is_bound_to_the_checkout(self):
        _, description = self.kernel(GOFLAGS="-toolexec=/bin/false", GOWORK="off")
        self.assertIn(f"--go_work={ROOT}", description["argv"])
        self.assertEqual(description["env"]["GOWORK"], "auto")
        self.assertEqual(set(description["env"]), {"PATH", "GOWORK"}, "commands with other settings share the description")

    def test_the_kernel_of_the_user(self):
        """It needs no variable of a command, nor Go on the path, and replaces no other."""
        commands = f'register_for_user "{self.folder}/user"'
        _, description = self.kernel(commands, GOFLAGS="", GOPROXY="off", DENSITYUNCERTAINTY_GOPROXY="https://example.com")
        self.assertEqual({name: description["env"][name] for name in ("GOEXPERIMENT", "GOPROXY", "DENSITYUNCERTAINTY_GOPROXY", "DENSITYUNCERTAINTY_CHECKOUT")}, {
            "GOEXPERIMENT": "simd", "GOPROXY": "off", "DENSITYUNCERTAINTY_GOPROXY": "https://example.com", "DENSITYUNCERTAINTY_CHECKOUT": str(ROOT),
        })  # fmt: skip
        self.assertIn(str(Path(shutil.which("go")).parent), description["env"]["PATH"].split(":"))
        (self.folder / "user" / "kernels" / "gonb" / "kernel.json").write_text('{"argv": ["/usr/bin/gonb"]}')
        done = self.bash(f"enter; {commands}")
        self.assertEqual((done.returncode, "another installation" in done.stderr), (1, True), done.stderr)

    def test_check_data(self):
        for place, status, says in (("", 0, ""), (str(self.folder), 0, ""), (f"{self.folder}/no", 1, f"error: DENSITYUNCERTAINTY_DATA names a folder that is not there: {self.folder}/no; ")):
            done = self.bash("check_data", DENSITYUNCERTAINTY_DATA=place)
            self.assertEqual((done.returncode, done.stderr[: len(says) or None]), (status, says))

    def test_data_and_cache_are_meant_from_here(self):
        """Notebooks run in another folder."""
        (self.folder / "data").mkdir()
        done = self.bash(
            f'cd "{self.folder}"; check_data; printf "%s %s" "$DENSITYUNCERTAINTY_DATA" "$DENSITYUNCERTAINTY_CACHE"',
            DENSITYUNCERTAINTY_DATA="data", DENSITYUNCERTAINTY_CACHE="cache",
        )
        self.assertEqual((done.stdout, done.returncode), (f"{self.folder}/data {self.folder}/cache", 0), done.stderr)


class SetUp(Scripts):
    """Its parts are made beside each other, and end together."""

    STUBS = "check_go() { go_version=x; }; check_python() { :; }; enter() { :; }; register_kernel() { echo registered; }; "

    SLOW = "set -o functrace; trap 'sleep .02' DEBUG; "

    def test_a_part_that_fails(self):
        # Bash has something to say of a job that ends while the next one is being started: this leaves it the time.
        for python, go in (("fail broken", "echo go"), ("echo python", "fail broken")):
            with self.subTest(python=python):
                done = self.bash(f"{self.STUBS} set_up_python() {{ {python}; }}; set_up_go() {{ {go}; }}; {self.SLOW} set_up; echo entered")
                self.assertEqual((done.returncode, done.stderr), (1, "error: broken\n"))
                self.assertNotIn("registered", done.stdout)
                self.assertNotIn("entered", done.stdout)

    def test_an_interruption(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                # It comes when the second part has started, and slowly what follows the start.
                parts = f"set_up_python() {{ sleep 61.25; }}; set_up_go() {{ echo started; sleep 61.25; }}; {self.SLOW} set_up; echo entered"
                script = f'set -euo pipefail; source "{HERE}/lib.sh"; state="{self.folder}/state"; {self.STUBS} {parts}'
                process = subprocess.Popen(
                    ["bash", "-c", script], stdout=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
                )
                self.addCleanup(process.stdout.close)
                self.assertEqual(process.stdout.readline(), "started\n")
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=30), 130)
                self.assertNotIn("entered", process.stdout.read())
                left = [one for one in psutil.process_iter(["cmdline", "status"]) if one.info["cmdline"] == ["sleep", "61.25"] and one.info["status"] != psutil.STATUS_ZOMBIE]
                self.assertEqual(left, [])

    def test_what_is_there(self):
        """What is finished is not made again, until what it is made of changes."""
        done = self.bash('go_version=1; step() { printf "made "; [[ $2 != no ]] || exit 1; }; once a L 1 x; once a L 1 x; once a L 2 x; (once b L 1 no) || once b L 1 x; go_version=2; once b L 1 x')
        self.assertEqual(done.stdout, "made " * 5, done.stderr)


class WorkingCopies(Scripts):
    """./environment/lab opens copies of the notebooks."""

    def copy(self):
        done = self.bash(f'root="{self.folder}"; copy_notebooks')
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_copies(self):
        def notebook(text):
            return json.dumps({"cells": [{"source": [text]}]}, indent=1) + "\n"

        original, copied = self.folder / "notebooks" / "a b.ipynb", self.folder / "out" / "lab" / "a b.ipynb"
        original.parent.mkdir()

        def check(text, yours=False):
            self.assertEqual("a b.ipynb is yours, and older" in self.copy(), yours)
            self.assertEqual(copied.read_text(), notebook(text))

        original.write_text(notebook("[1](../figures/README.md)"))
        check("[1](../../figures/README.md)")
        original.write_text(notebook("2"))
        check("2")  # not changed, so it follows
        copied.write_text(notebook("mine"))
        check("mine")
        original.write_text(notebook("3"))
        check("mine", yours=True)
        copied.unlink()
        check("3")
        original.write_text(notebook("4"))
        copied.write_text(notebook("4"))  # as a call leaves it that was killed before its end
        check("4")
        original.write_text("<<<<<<< no notebook")
        self.assertEqual((self.copy(), copied.read_text()), ("", original.read_text()))


class Arguments(unittest.TestCase):
    """The commands refuse wrong arguments before they set anything up."""

    def status(self, *command):
        done = subprocess.run([HERE / command[0], *command[1:]], check=False, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def test_wrong_arguments(self):
        for command, text in (
            (("setup", "now"), '"now"'),
            (("reproduce", "--fast"), '"--fast"'),
            (("test", "everything"), '"everything"'),
            (("test", "--all", "x"), '"--all x"'),
            (("slides",), "needs the name of a notebook"),
            (("slides", "--fast"), 'no notebook "--fast"'),
            (("slides", "02_bayes_to_layer"), "no cell of 02_bayes_to_layer is marked as a slide; marked are: 00_start_here.ipynb"),
            (("lab", "--prot=1"), '"--prot=1"'),
        ):
            with self.subTest(" ".join(command)):
                status, printed = self.status(*command)
                self.assertEqual(status, 2, printed)
                self.assertIn(text, printed)
                self.assertIn(f"./environment/{command[0]} --help", printed)

    def test_help(self):
        for command in ("setup", "reproduce", "test", "lab", "slides"):
            with self.subTest(command):
                status, printed = self.status(command, "--help")
                self.assertEqual(status, 0, command)
                self.assertTrue(printed.startswith(f"Usage: ./environment/{command}"), printed)


def start_lab(case, stdin=None, preexec_fn=None, **variables):
    """Starts JupyterLab for a class of tests. Returns its process, its address, and the token that it wants."""
    process = subprocess.Popen(
        [HERE / "lab", "--no-browser", "--port=0"],
        stdin=stdin,
        preexec_fn=preexec_fn,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **variables},
    )
    for tidy in (process.stdout.close, process.wait, process.kill):
        case.addClassCleanup(tidy)
    for line in process.stdout:
        if "http://127.0.0.1" in line and "token=" in line:
            address, token = line.split()[-1].split("/lab/tree/out/lab/00_start_here.ipynb?token=")
            break
    else:
        raise AssertionError("JupyterLab ended")
    for _ in range(100):  # It says so a moment before it listens.
        try:
            urllib.request.urlopen(f"{address}/api", timeout=60).close()
            return process, address, token
        except OSError:
            time.sleep(0.1)
    raise AssertionError("JupyterLab did not start")


class Server(unittest.TestCase):
    """What tests of JupyterLab share."""

    def request(self, path, content=None, method=None):
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        data = None if content is None else json.dumps(content).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{self.address}/{path}", data, headers, method=method), timeout=60) as answer:
            return json.load(answer)

    def programs(self):
        """What this JupyterLab has started: its kernels, their cells and their language servers."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def wait_for(self, condition, otherwise):
        for _ in range(1200):
            if condition():
                return
            time.sleep(0.1)
        self.fail(otherwise)


class Lab(Server):
    """JupyterLab as ./environment/lab starts it."""

    @classmethod
    def setUpClass(cls):
        cls.process, cls.address, cls.token = start_lab(cls)

    def test_the_rest_is_set_up_behind(self):
        log = ROOT / ".env" / "log" / "behind.log"
        self.wait_for(lambda: log.exists() and "Ready in" in log.read_text(), "the language server is not set up behind")

    def test_only_our_kernel(self):
        self.assertEqual(list(self.request("api/kernelspecs")["kernelspecs"]), ["gonb"])

    def test_exports(self):
        """What the menu offers works, without a network. It leaves the first three out."""
        offered = self.request("api/nbconvert").keys() - {"custom", "notebook", "python"}
        self.assertEqual(offered, {"html", "markdown", "script"})
        for name in offered:
            request = urllib.request.Request(f"{self.address}/nbconvert/{name}/notebooks/02_bayes_to_layer.ipynb", headers={"Authorization": f"token {self.token}"})
            with urllib.request.urlopen(request, timeout=300) as answer:
                self.assertNotIn('src="http', answer.read().decode())


class Completion(unittest.TestCase):
    """What a kernel completes, without Jupyter."""

    def test_a_language_server_that_comes_later(self):
        """Until it is there and has loaded, nothing is completed, and nobody waits for it."""
        from jupyter_client.manager import KernelManager  # not for the other tests

        with tempfile.TemporaryDirectory() as folder:
            tools = Path(shutil.which("gonb")).parent
            (Path(folder) / "goimports").symlink_to(tools / "goimports")
            manager = KernelManager(kernel_name="gonb")
            others = [path for path in os.environ["PATH"].split(os.pathsep) if not (Path(path) / "gopls").exists()]
            manager.kernel_spec.env["PATH"] = os.pathsep.join([folder, *others])
            manager.start_kernel()
            self.addCleanup(manager.shutdown_kernel)
            client = manager.client()
            client.start_channels()
            self.addCleanup(client.stop_channels)
            client.wait_for_ready(timeout=60)

            def matches():
                code, began = "%%\nfmt.Pri", time.monotonic()
                client.complete(code, len(code))
                found = client.get_shell_msg(timeout=60)["content"]["matches"]
                self.assertLess(time.monotonic() - began, 10)  # two seconds where nothing else runs
                return found

            self.assertEqual(matches(), [])
            (Path(folder) / "gopls").symlink_to(tools / "gopls")
            for _ in range(100):
                found = matches()
                if "Println" in found:
                    break
                self.assertEqual(found, [])
                time.sleep(0.5)
            self.assertIn("Println", found)

            # The language server ends with a kernel that is killed.
            servers = [one for one in psutil.Process().children(recursive=True) if one.name() == "gopls"]
            self.assertTrue(servers)
            manager.signal_kernel(signal.SIGKILL)
            left = psutil.wait_procs(servers, timeout=120)[1]
            self.assertEqual([one for one in left if one.is_running() and one.status() != psutil.STATUS_ZOMBIE], [])


class Ending(Server):
    """Ctrl-C, as often as it is pressed, ends JupyterLab and all that it started, and prints no trace."""

    def test_in_a_terminal(self):
        terminal, inside = pty.openpty()
        self.addCleanup(os.close, terminal)
        self.addCleanup(os.close, inside)

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process, self.address, self.token = start_lab(type(self), stdin=inside, preexec_fn=own_terminal)
        # As soon as there is a kernel: it is still starting programs that it needs.
        self.request("api/kernels", {"name": "gonb"})
        self.wait_for(self.programs, "no kernel started")
        started = self.programs()
        for _ in range(3):
            os.write(terminal, b"\x03")
            time.sleep(0.3)
        printed = self.process.stdout.read()
        self.process.wait(timeout=60)
        self.assertIn("Shutting down", printed)
        self.assertNotRegex(printed, r"panic:|Traceback|goroutine|\[y/N\]|y/\[n\]")
        self.wait_for(lambda: not any(one.is_running() for one in started), "something is left running")


if __name__ == "__main__":
    unittest.main(verbosity=2)

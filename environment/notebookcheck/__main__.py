"""Runs and checks notebooks: python environment/notebookcheck --help."""

import signal
import sys

import cli


def interrupt(*_):
    raise KeyboardInterrupt


# A request to end is handled like Ctrl-C, so that it leaves nothing running either.
signal.signal(signal.SIGTERM, interrupt)
try:
    sys.exit(cli.main())
except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
    sys.exit(130)

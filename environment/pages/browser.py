"""The browser of this machine, for tests."""

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# It reaches for nothing but the page. A container's administrator has no sandbox.
FLAGS = ["--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


def find():
    """The path of a Chromium, or nothing."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def flags():
    """What it is started with."""
    return FLAGS + (["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])

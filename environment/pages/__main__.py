"""Makes the pages to read and publish: python environment/pages --help."""

import sys

import cli

sys.exit(cli.main())

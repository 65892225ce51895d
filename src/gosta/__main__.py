"""``python -m gosta``: the command line."""

from gosta.cli.main import main

main()

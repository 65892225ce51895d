"""``python -m gosta`` and ``gosta``: the command line."""

from gosta.runtime.interrupts import leave_while_starting


def main() -> None:
    """Run the command line; Ctrl-C ends it with one line from the first import on."""
    leave_while_starting()
    from gosta.cli.main import main as run

    run()


if __name__ == "__main__":
    main()

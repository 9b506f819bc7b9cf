"""The command: `paritas` on the PATH, and `python -m paritas`."""

import signal
import sys

from ._paritas import run_command


def main() -> None:
    """Runs the command with the arguments of this process, and ends the process with its exit code."""
    # Python would only record Ctrl-C and wait for the command. Interrupts that were ignored at the start stay ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run_command(["paritas", *sys.argv[1:]]))


if __name__ == "__main__":
    main()

"""Runs a command in a terminal of its own and types what is given on the standard input, a line at each prompt.

Prints what the terminal showed, and ends as the command does.
"""

import os
import pty
import sys
import termios
import time

lines = sys.stdin.read().splitlines()
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
shown = b""
prompted = 0
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:  # how the other end says that it is closed
        break
    shown += piece
    if shown[prompted:].endswith(b": ") and lines:
        prompted = len(shown)
        # People type when they have read it: by then a password is not shown.
        for _ in range(100):
            if not termios.tcgetattr(terminal)[3] & termios.ECHO:
                break
            time.sleep(0.01)
        os.write(terminal, lines.pop(0).encode() + b"\n")
_, status = os.waitpid(pid, 0)
sys.stdout.write(shown.decode().replace("\r\n", "\n"))
sys.exit(os.waitstatus_to_exitcode(status))

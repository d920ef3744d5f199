"""Run the user's server and report its state: server.py --address A --port P --control C -- COMMAND

A client of the control port receives nothing while the server runs, and the exit status with the last line of output
when the server ends. Standard library only, Python 3.6 and later. {address} and {port} in the command are
replaced; /bin/sh runs it, in a session that ends with this process.
"""

import argparse
import os
import socket
import subprocess
import sys
import threading

TAIL = 16 << 10  # bytes at the end of the output that are read
COMPLAINTS = ("error", "exception", "out of memory", "cannot", "failed", "no such", "not found")


def last_words(path):
    """Return the line that best explains why a server ended: the last error message, or else the last line."""
    with open(path, "rb") as log:
        log.seek(max(0, os.path.getsize(path) - TAIL))
        text = log.read().decode("utf-8", "replace")
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if any(word in line.lower() for word in COMPLAINTS)]
    return (telling or lines or ["it printed nothing"])[-1][:300]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--control", type=int, required=True)
    parser.add_argument("command")
    chosen = parser.parse_args()
    family = socket.AF_INET6 if ":" in chosen.address else socket.AF_INET
    control = socket.socket(family, socket.SOCK_STREAM)
    control.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    control.bind((chosen.address, chosen.control))
    command = chosen.command.replace("{address}", chosen.address).replace("{port}", str(chosen.port))
    with open("llm_server.log", "wb") as log:
        child = subprocess.Popen(["/bin/sh", "-c", command], stdout=log, stderr=subprocess.STDOUT)
    control.listen(16)

    def answer():
        while True:
            peer = control.accept()[0]
            status = child.poll()
            with peer:
                try:
                    if status is not None:
                        text = "exit status %d: %s" % (status, last_words("llm_server.log"))
                        peer.sendall(text.encode("utf-8", "replace"))
                except OSError:
                    pass  # the client has disconnected; the next client gets an answer

    threading.Thread(target=answer, daemon=True).start()
    child.wait()
    sys.stderr.write("the server ended with exit status %d: %s\n" % (child.returncode, last_words("llm_server.log")))
    sys.stderr.flush()
    threading.Event().wait()  # the client gets the message, and ends the case


if __name__ == "__main__":
    main()

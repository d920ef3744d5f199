"""Hosts that lie: their Python runs Fleetmark's agent with false output."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.fleet.hosts import Fleet

PLACE = "/opt/liar"

# A Python that is the real one for all but the agent. It goes by its own name, so that the facts name it.
_PYTHON = f"""\
#!/bin/bash
case "$*" in
  *follow.py*) lie=follow ;;
  *FLEETMARK*) lie=launch ;;
  *session.py*)
    if [ -e {PLACE}/facts.py ]; then printf FLEETMARK; exec /usr/bin/python3 {PLACE}/facts.py; fi
    lie=session ;;
esac
[ -n "$lie" ] && [ -e {PLACE}/$lie.py ] && exec -a {PLACE}/python3 /usr/bin/python3 {PLACE}/$lie.py "$@"
exec -a {PLACE}/python3 /usr/bin/python3 "$@"
"""

# The session of the agent, in which the lies about a launch and of a follower take the place of the truth.
_SESSION = f"""\
import os, subprocess, sys, types
code, sys.argv = sys.argv[sys.argv.index("-c") + 1], ["-c"]
def lie(what):
    path = {PLACE!r} + "/" + what + ".py"
    return path if os.path.exists(path) else None
def lying_import(name):
    new = __import__(name)
    if name == "job" and lie("launch"):
        new.start = start
    return new
def start(payload):
    subprocess.run(["/usr/bin/python3", lie("launch")], stdin=subprocess.DEVNULL)
    os._exit(0)
class Follower(object):
    def __init__(self, folder):
        self.folder = folder
    def run(self):
        del sys.modules["follow"]
        sys.argv = ["python3", "follow.py", self.folder]
        with open(lie("follow")) as source:
            exec(source.read(), {{"__name__": "__main__"}})
        os._exit(0)
if lie("follow"):
    sys.modules["follow"] = types.ModuleType("follow")
    sys.modules["follow"].Follower = Follower
exec(code, {{"__import__": lying_import, "__name__": "__main__"}})
"""

# ``say(doc)`` is what the agent would say; the lie, in its place, may call ``really(doc)``.
_FOLLOW = """\
import base64, json, sys, zlib
folder = sys.argv[2]
sys.path.insert(0, folder)
import follow
really = follow.say
def part(step, name, data):
    really({{"e": "part", "step": step, "name": name, "data": base64.b64encode(zlib.compress(data)).decode()}})
def say(doc):
{lie}
follow.say = say
follow.Follower(folder).run()
"""


@contextlib.contextmanager
def liars(fleet: Fleet, lies: Mapping[str, tuple[str, str]], inventory: Path) -> Iterator[None]:
    """Let hosts lie: host to (what of, Python code). What of is ``follow`` (the body of ``say(doc)``), ``launch`` or
    ``facts`` (a program that prints the answer). ``inventory`` is written: all hosts, the liars with their Python.
    """
    lines = []
    for line in fleet.inventory.read_text().splitlines():
        name = line.split(" ", 1)[0]
        lines.append(f"{line} ansible_python_interpreter={PLACE}/python3" if name in lies else line)
    inventory.write_text("\n".join(lines) + "\n")
    try:
        for host, (kind, code) in lies.items():
            text = _FOLLOW.format(lie=textwrap.indent(textwrap.dedent(code), "    ")) if kind == "follow" else code
            fleet.exec(host, ["mkdir", "-p", PLACE])
            for name, content in (("python3", _PYTHON), ("session.py", _SESSION), (f"{kind}.py", text)):
                fleet.exec(host, ["sh", "-c", f"cat > {PLACE}/{name} && chmod +x {PLACE}/{name}"], input=content)
        yield
    finally:
        for host in fleet.names:  # a lying host's job runs on, and its peers may wait at a gate
            end = (
                "pkill -x fleetmark-job; timeout 20 sh -c 'while pgrep -x fleetmark-job; do sleep 0.1; done' >/dev/null"
            )
            fleet.exec(host, ["sh", "-c", f"{end}; rm -rf {PLACE} /var/tmp/fleetmark-0/jobs"], check=False)

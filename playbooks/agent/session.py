"""Serve a controller on this host in one process: report facts, start a job, then follow it.

A Python that receives this code over SSH defines ``take(n)``, which returns the next n bytes of stdin or exits.
Documents follow, each compressed with zlib after its length in 8 digits: facts.py with its imports, and its options.
If a job may start here, the agent's files and the job come next; the files are loaded while other hosts still report
their facts. Files are sent both as text and as bytecode, which saves compiling if the Python versions match. follow.py
handles the rest of the stream. An interrupted session leaves nothing behind: the job is detached, and another process
starts or follows it. Standard library only, Python 3.6 and later.
"""

import json
import marshal
import os
import sys
import zlib
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER


def document(take):
    return zlib.decompress(take(int(take(8))))


def say(doc):
    sys.stdout.write("FLEETMARK" + json.dumps(doc) + "\n")
    sys.stdout.flush()


CODE, TEXTS = {}, {}  # bytecode and text of files, by name


def take_code(data):
    """Keep the code of files, where it is for this version of Python."""
    if data.startswith(MAGIC_NUMBER):
        CODE.update(marshal.loads(data[len(MAGIC_NUMBER) :]))


class Sent:
    """An importer for modules that the controller sent as bytecode or text."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return ModuleSpec(name, cls) if name + ".py" in CODE or name + ".py" in TEXTS else None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(new):
        name = new.__name__ + ".py"
        exec(CODE.get(name) or compile(TEXTS[name], name, "exec"), new.__dict__)


def main(take):
    sys.meta_path.insert(-1, Sent)  # before files are looked for
    sys.modules.update(dict.fromkeys(("bz2", "lzma")))  # shutil does without, and saves 2 ms; we pack no archives
    take_code(document(take))
    TEXTS.update(json.loads(document(take).decode()))
    say(__import__("facts").gather(json.loads(document(take).decode())))
    take_code(document(take))
    source = json.loads(document(take).decode())
    TEXTS.update(source)
    job = __import__("job")
    for name in ("follow", "runner"):
        __import__(name)
    payload = {"source": source, "job": json.loads(document(take).decode())}
    try:
        answer = job.start(payload)
    except (OSError, RuntimeError) as error:
        answer = {"state": "error", "error": str(error)}
    say(answer)
    if answer["state"] in ("started", "running", "finished"):
        folder = payload["job"]["folder"]
        sys.path.insert(0, folder)
        sys.dont_write_bytecode = True
        import follow

        follow.Follower(folder).run()
    os._exit(0)  # without waiting for commands that did not answer when facts were gathered

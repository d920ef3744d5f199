"""One process for all that a controller has to do with this host: it tells facts, starts a job, then follows it.

A Python that is sent this over SSH has ``take(n)``, which returns the next n bytes of stdin or ends. Documents follow,
each packed by zlib behind its length in 8 digits: facts.py and what it imports, its options; then, if a job may be
started here, the agent's files, which are loaded while other hosts still tell their facts, and the job. Files come as
code, which a Python of the controller's version need not compile, and as text. What follows is follow.py's. A session
that is cut off leaves nothing behind: the job is detached, and another process starts or follows it. Standard library
only, Python 3.6 and later.
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


CODE, TEXTS = {}, {}  # of files, by name


def take_code(data):
    """Keep the code of files, where it is for this version of Python."""
    if data.startswith(MAGIC_NUMBER):
        CODE.update(marshal.loads(data[len(MAGIC_NUMBER) :]))


class Sent:
    """Finds modules that were sent, as code or as text."""

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

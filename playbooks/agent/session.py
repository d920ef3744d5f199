"""Serve a controller on this host in one process: report facts, start a job, then follow it.

A Python that receives this code over SSH defines ``take(n)``, which returns the next n bytes of stdin or exits.
Documents follow, each compressed with zlib after its length in 8 digits: the files of ``facts/``, and the options of
facts.py. If a job may start here, the agent's files and the job come next; the files are loaded while other hosts
still report their facts. follow.py handles the rest of the stream. An interrupted session leaves nothing behind: the
job is detached, and another process starts or follows it. Standard library only, Python 3.6 and later.
"""

import json
import os
import sys
import zlib
from importlib.machinery import ModuleSpec


def document(take):
    return zlib.decompress(take(int(take(8))))


def say(doc):
    sys.stdout.write("FLEETMARK" + json.dumps(doc) + "\n")
    sys.stdout.flush()


class Sent(object):
    """Import the modules whose texts the controller sent."""

    def __init__(self):
        self.texts = {}  # by file name

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self) if name + ".py" in self.texts else None

    @staticmethod
    def create_module(spec):
        return None

    def exec_module(self, module):
        name = module.__name__ + ".py"
        exec(compile(self.texts[name], name, "exec"), module.__dict__)


def main(take):
    sent = Sent()
    sys.meta_path.insert(0, sent)
    sent.texts.update(json.loads(document(take).decode()))
    say(__import__("facts").gather(json.loads(document(take).decode())))
    source = json.loads(document(take).decode())
    sent.texts.update(source)
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
    os._exit(0)  # do not wait for commands that did not answer when facts were collected

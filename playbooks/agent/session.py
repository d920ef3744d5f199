"""One process for all that a controller has to do with this host: it tells facts, starts a job, then follows it.

A Python that is sent this over SSH has ``take(n)``, which returns the next n bytes of stdin or ends. Documents follow,
each packed by zlib behind its length in 8 digits: commands.py, facts.py, its options; then, if a job is to be started
here, the agent's files and the job. What follows is follow.py's. A session that is cut off leaves nothing behind: the
job is detached, and another process starts or follows it. Standard library only, Python 3.6 and later.
"""

import json
import os
import sys
import types
import zlib


def document(take):
    return zlib.decompress(take(int(take(8)))).decode()


def say(doc):
    sys.stdout.write("FLEETMARK" + json.dumps(doc) + "\n")
    sys.stdout.flush()


def module(name, source):
    """The module of a text, by which later imports find it too."""
    new = types.ModuleType(name)
    exec(compile(source, name + ".py", "exec"), new.__dict__)
    sys.modules[name] = new
    return new


def main(take):
    module("commands", document(take))
    facts = module("facts", document(take))
    say(facts.gather(json.loads(document(take))))
    payload = {"source": json.loads(document(take)), "job": json.loads(document(take))}
    job = module("job", payload["source"]["job.py"])
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

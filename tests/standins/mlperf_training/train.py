"""A stand-in for a training: replays retinanet.txt beside it as a log with the current time and the seed in SEED.

    train.py LOG [stretch=1.5] [evals=2] [then=hang|kill|abort]

LOG is added to; ``-`` is standard output. ``stretch`` makes the run as many times as long by its time stamps; ``evals``
ends it after that many evaluations, as ``then`` says.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

MARK = ":::MLLOG "


def main(path, *settings):
    options = dict(word.split("=", 1) for word in settings)
    stretch, evals = float(options.get("stretch", 1)), int(options.get("evals", 99))
    records = [json.loads(line[len(MARK) :]) for line in Path(__file__).with_name("retinanet.txt").open()]
    begin, now = records[0]["time_ms"], time.time() * 1000
    with Path("/dev/stdout" if path == "-" else path).open("a") as out:

        def log(record):
            record["time_ms"] = round(now + (record["time_ms"] - begin) * stretch)
            out.write(MARK + json.dumps(record) + "\n")
            out.flush()

        for record in records:
            if record["key"] == "seed":
                record["value"] = int(os.environ.get("SEED") or random.SystemRandom().randrange(2**31))
            if record["key"] == "epoch_start":
                out.write(f"epoch {record['value']}\n")
            log(record)
            evals -= record["key"] == "eval_accuracy"
            if not evals:
                break
        if evals:
            return
        if options["then"] == "abort":
            stop = records[-1]
            stop["metadata"].update(status="aborted", epoch_num=99)
            log(stop)
        elif options["then"] == "hang":
            out.write("[rank 3] Watchdog caught collective operation timeout\n")
            out.flush()
            time.sleep(1000)
        else:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Stands beside the runner of a trial and puts its setting back when the runner is gone, however that ended.

``python3 keeper.py DIR`` starts the runner of the job in DIR, which does the same at its own end: so only a host that
loses both keeps the setting, until its next job is started or it boots. Standard library only, Python 3.6 and later.
"""

import os
import signal
import subprocess
import sys

import setting


def main():
    folder = sys.argv[1]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    runner = subprocess.Popen([sys.executable, os.path.join(folder, "runner.py"), folder], start_new_session=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the launcher waits for the runner's line only
    runner.wait()
    for sentence in setting.restore(folder):
        sys.stderr.write(sentence + "\n")


if __name__ == "__main__":
    main()

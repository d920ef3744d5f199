"""Let a reader wait for a slow page on a page that says so, instead of in front of a blank one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from fleetmark.verbs.serve.pages import Reply

WAIT_S = 0.8  # how long a request waits for its page
MAX_JOBS = 16  # pages that are being made, or that are ready for their reader
Key = tuple[str, tuple[tuple[str, str], ...]]  # a path, and its fields in order


class Waiting:
    """Make replies beside the requests for them. Threads may use it together."""

    def __init__(self, make: Callable[[str, Mapping[str, str]], Reply], meanwhile: Callable[[], Reply]) -> None:
        """``make``: returns the reply to a path and its fields; ``meanwhile``: returns the one to show until then."""
        self._make, self._meanwhile = make, meanwhile
        self._lock = threading.Lock()  # of the jobs
        self._jobs: OrderedDict[Key, Future[Reply]] = OrderedDict()

    def reply(self, path: str, fields: Mapping[str, str]) -> Reply:
        """Return the reply if it is ready within WAIT_S, otherwise the one that asks the browser to come back."""
        key = path, tuple(sorted(fields.items()))
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                if not self._has_room():
                    return self._make(path, fields)
                job = self._jobs[key] = Future()
                threading.Thread(target=self._run, args=(job, path, fields), daemon=True).start()
        try:
            reply = job.result(WAIT_S)
        except TimeoutError:
            return self._meanwhile()
        with self._lock:
            if self._jobs.get(key) is job:
                del self._jobs[key]
        return reply

    def _run(self, job: Future[Reply], path: str, fields: Mapping[str, str]) -> None:
        try:
            job.set_result(self._make(path, fields))
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits for the reply
            job.set_exception(error)

    def _has_room(self) -> bool:
        """Return whether another job can be kept. The oldest ready page makes room, because its reader has left."""
        if len(self._jobs) >= MAX_JOBS:
            left = next((key for key, job in self._jobs.items() if job.done()), None)
            if left is None:
                return False
            del self._jobs[left]
        return True

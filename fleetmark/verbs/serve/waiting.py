"""Show a waiting page while a slow page is created, instead of a blank browser window."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from fleetmark.verbs.serve.pages import Reply

WAIT_S = 0.8  # seconds that a request waits for its page
MAX_JOBS = 16  # maximum pages in progress, or ready but not fetched
Key = tuple[str, tuple[tuple[str, str], ...]]  # a path and its sorted fields


class Waiting:
    """Create replies in background threads. Safe to use from several threads."""

    def __init__(self, make: Callable[[str, Mapping[str, str]], Reply], meanwhile: Callable[[], Reply]) -> None:
        """Store ``make``, which returns the reply for a path and fields, and ``meanwhile``, which returns a waiting
        page.
        """
        self._make, self._meanwhile = make, meanwhile
        self._lock = threading.Lock()  # protects the jobs
        self._jobs: OrderedDict[Key, Future[Reply]] = OrderedDict()

    def reply(self, path: str, fields: Mapping[str, str]) -> Reply:
        """Return the reply if it is ready within WAIT_S, otherwise the waiting page."""
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
        """Return whether another job fits. If necessary, drop the oldest ready page, whose reader has left."""
        if len(self._jobs) >= MAX_JOBS:
            left = next((key for key, job in self._jobs.items() if job.done()), None)
            if left is None:
                return False
            del self._jobs[left]
        return True

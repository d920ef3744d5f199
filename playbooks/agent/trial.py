"""A trial of one setting in the job runner: it is set before each step, read after it, and put back at the end.

Imported by the runner of a job that tries one. Standard library only, Python 3.6 and later. The keeper, the runner's
parent, is handed the old values first, and puts them back when the runner is killed.
"""

import json
import os
import time

import setting


class Trial(object):
    """``spec``: what to set (``items``), and by repeat whether it is set (``sides``). ``keeper``: the descriptor of the
    pipe to the keeper; None where there is none.
    """

    def __init__(self, folder, spec, keeper):
        self.folder, self.spec = folder, spec
        self.before = None  # what was set before the trial, as setting.begin returns it
        self.refused = None  # why the setting cannot be tried
        self.to_keeper = None
        if keeper is not None:
            self.to_keeper = open(keeper, "wb")
            os.set_inheritable(keeper, False)

    def prepare(self):
        """Store what is set before the trial; where that fails, no step runs."""
        try:
            left = setting.restore(self.folder)  # of a runner that was killed, and its keeper too
            if left:  # what is set now is not what was set before the trial
                raise setting.CannotSet("; ".join(left))
            self.before = setting.begin(self.folder, self.spec["items"])
            self.tell_keeper(self.before)
        except setting.CannotSet as error:
            self.refused = ("nothing was changed: %s" % error)[:1000]

    def run(self, step, execute):
        """The result of a step and its folder, as ``execute`` returns them: the setting is turned before it, and read
        after it.
        """
        failed = {"ended": "error", "started": time.time(), "wall_s": 0.0}
        if self.refused:
            return dict(failed, reason=self.refused), None
        try:
            on = self.spec["sides"][step["repeat"]]
            setting.turn(self.folder, self.before, on)
            result, out = execute()
            tried, wanted = self.tried(on)
        except setting.CannotSet as error:
            return dict(failed, reason=("%s" % error)[:1000]), None
        if tried:
            result["setting"] = tried
        elif result["ended"] == "exit":
            result.update(ended="error", reason="the setting was changed while it ran; it was %s" % wanted[:200])
        return result, out

    def tried(self, on):
        """What was set while a step ran, as read after it; None where somebody else changed it."""
        values = setting.values(self.before)
        parts = self.before["items"]
        wanted = {part["value" if on else "old"] for part in parts}
        kept = all(setting.same(p, setting.current(p), p["value" if on else "old"]) for p in parts)
        return {"on": on, "values": values[:100]} if kept else None, ", ".join(sorted(wanted))

    def restore(self):
        """Put the old values back. One sentence for each that could not be."""
        left = setting.restore(self.folder, self.before)
        if self.before and not left:
            self.tell_keeper("restored")
        return left

    def tell_keeper(self, order):
        """Hand the keeper a line: the old values, then that they are set again."""
        if self.to_keeper:
            try:
                self.to_keeper.write(json.dumps(order).encode() + b"\n")
                self.to_keeper.flush()
            except OSError:
                self.to_keeper = None  # it was killed

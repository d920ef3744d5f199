"""Try one setting in the job runner: set it before each step, read it afterwards, and restore it at the end.

Imported by the runner of a job that tries a setting. Standard library only, Python 3.6 and later. The keeper is the
runner's parent. It receives the old values first, and restores them if the runner is killed.
"""

import json
import os
import time

import setting


class Trial(object):
    """Control a trial of a setting.

    ``spec``: what to set (``items``), and whether it is set in each repeat (``sides``); ``keeper``: the descriptor of
    the pipe to the keeper, if there is one.
    """

    def __init__(self, folder, spec, keeper):
        self.folder, self.spec = folder, spec
        self.before = None  # the values before the trial, as returned by setting.begin
        self.refused = None  # the reason why the setting cannot be tried
        self.to_keeper = None
        if keeper is not None:
            self.to_keeper = open(keeper, "wb")
            os.set_inheritable(keeper, False)

    def prepare(self):
        """Store the values before the trial. If this fails, no step runs."""
        try:
            left = setting.restore(self.folder)  # from a runner that was killed with its keeper
            if left:  # the current values are not those from before the trial
                raise setting.CannotSet("; ".join(left))
            self.before = setting.begin(self.folder, self.spec["items"])
            self.tell_keeper(self.before)
        except setting.CannotSet as error:
            self.refused = ("nothing was changed: %s" % error)[:1000]

    def run(self, step, execute):
        """Set the setting for a step, run the step with ``execute``, and read the setting afterwards.

        Return the result of the step and its folder, as ``execute`` does.
        """
        failed = {"ended": "error", "started": time.time(), "wall_s": 0.0}
        if self.refused:
            return dict(failed, reason=self.refused), None
        try:
            is_on = self.spec["sides"][step["repeat"]]
            setting.turn(self.folder, self.before, is_on)
            result, out = execute()
            tried, wanted = self.tried(is_on)
        except setting.CannotSet as error:
            return dict(failed, reason=("%s" % error)[:1000]), None
        if tried:
            result["setting"] = tried
        elif result["ended"] == "exit":
            result.update(ended="error", reason="the setting was changed while it ran; it was %s" % wanted[:200])
        return result, out

    def tried(self, is_on):
        """Return the value during a step, as read afterwards, or None if another process changed it."""
        values = setting.values(self.before)
        parts = self.before["items"]
        wanted = {part["value" if is_on else "old"] for part in parts}
        kept = all(setting.is_equal(p, setting.current(p), p["value" if is_on else "old"]) for p in parts)
        return {"on": is_on, "values": values[:100]} if kept else None, ", ".join(sorted(wanted))

    def restore(self):
        """Restore the old values. Return one sentence for each value that could not be restored."""
        left = setting.restore(self.folder, self.before)
        if self.before and not left:
            self.tell_keeper("restored")
        return left

    def tell_keeper(self, order):
        """Send the keeper a line: first the old values, and later that they are restored."""
        if self.to_keeper:
            try:
                self.to_keeper.write(json.dumps(order).encode() + b"\n")
                self.to_keeper.flush()
            except OSError:
                self.to_keeper = None  # the keeper was killed

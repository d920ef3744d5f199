"""Run the steps of one job in order, detached from the caller. Each result is on disk before it is reported."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import container
from accelerators import watch_of
from disks import paths_of
from files import FULL, hold, write_atomic
from followers import Followers
from groups import NotHeld, enter, has_systemd, leave
from lock import Busy
from outputs import FLOODED, OUTPUT_CAP, collect, cut_outputs, output_size
from processes import GRACE_S, become_subreaper, born, end, end_marked, ended_within, listening, reap_orphans
from steps import remaining
from telemetry import Sampler

LISTENS_S = 60  # timeout for a server to listen, which includes creating a database
RESERVE = 1 << 20  # reserved bytes, so that a full disk can still be reported
UNWATCHED_S = 30.0  # a trial ends and restores its setting after this time without its controller
ABANDONED_S = 900.0  # a waiting job ends after this time without its controller
# Why a step did not start, or why the controller ended it, as recorded on the host; the archive has more detail.
RELEASED = {
    "skip": ("lost", "a required host did not join"),
    "fail": ("error", "a required host could not be prepared"),
    "cancel": ("lost", "a required host was lost"),
    "drop": ("dropped", None),
}
SECRET = re.compile("TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_?KEY", re.IGNORECASE)


class Stop(Exception):
    """Report a request to end the job, and its origin."""


class Runner:
    """Run the steps of one job in one thread. Only ``followers`` and the telemetry samplers use other threads."""

    def __init__(self, folder, keeper=None):
        self.folder = folder
        with open(os.path.join(folder, "job.json")) as source:
            self.job = json.load(source)
        self.trial = trial_of(self.job, folder, keeper)
        self.stopping = None
        self.stopped_at = None
        self.left_groups = []  # the control groups to which this process belonged before its shares applied
        self.followers = Followers(self.job, folder)
        self.tell, self.sleep = self.followers.tell, self.followers.sleep

    # -- the job

    def enter_shares(self):
        """Limit this process and its children to the shares of the suite, if any. Raise NotHeld."""
        if self.job.get("shares"):
            paths = [self.folder, *paths_of(self.job["steps"])]
            self.left_groups = enter(self.job["shares"], self.folder, has_systemd(), paths)

    def run(self):
        signal.set_wakeup_fd(self.followers.wake_w)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self.on_term)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        become_subreaper()
        state = "died: see %s/runner.log" % self.folder
        try:
            with open(os.path.join(self.folder, "reserve"), "wb") as reserve:
                hold(reserve, RESERVE)
            self.end_leftovers()
            self.tell("start", pid=os.getpid())
            if self.trial:
                self.trial.prepare()
            for step in remaining(self.folder, self.job):
                self.one(step)
            state = "finished"
        except Stop as stop:
            state = "stopped: %s" % stop
        except OSError as error:
            state = "died: %s" % error
        finally:
            reap_orphans()
            left = self.trial.restore() if self.trial else []
            if left:
                state = "left: " + "; ".join(left)
            shutil.rmtree(os.path.join(self.folder, "scratch"), ignore_errors=True)
            self.drop_reserve()
            leave(self.left_groups, self.folder)
            try:
                self.tell("finish", state=state[:1000])
            except OSError:
                pass  # the folder was removed, and the follower reports this

    def notice_unwatched(self):
        """Stop a trial whose controller has ended or lost its connection."""
        alone = self.trial and self.followers.silence() > UNWATCHED_S
        if alone and not self.stopping:
            self.stopping = "nobody followed for %d s, so the setting was restored" % UNWATCHED_S
            self.stopped_at = time.monotonic()

    def on_term(self, *_):
        self.stopping = "asked to stop"
        self.stopped_at = self.stopped_at or time.monotonic()

    def drop_reserve(self):
        try:
            os.unlink(os.path.join(self.folder, "reserve"))
        except OSError:
            pass

    def check_stop(self):
        self.notice_unwatched()
        if self.stopping:
            raise Stop(self.stopping)
        if not os.path.exists(os.path.join(self.folder, "job.json")):
            raise Stop("its work directory was removed")

    def leaves(self, step):
        """Return whether to end ``step`` because the job was asked to stop.

        A server waits for its clients. They receive the stop slightly later, and would report an earlier end of their
        server as a failed run.
        """
        return self.stopping and time.monotonic() - self.stopped_at >= (GRACE_S if step.get("serves") else 0)

    def order(self, step):
        """Return the controller's order for this step, one of ``job.ORDERS``, or None until there is one."""
        try:
            with open(os.path.join(self.folder, "go", step["id"])) as source:
                return source.read()
        except OSError:
            return None

    def one(self, step):
        scratch = os.path.join(self.folder, "scratch", step["workload"])
        try:
            self.attempt(step, scratch)
        finally:
            if step.get("last"):
                shutil.rmtree(scratch, ignore_errors=True)

    def attempt(self, step, scratch):
        self.check_stop()
        if self.order(step) == "drop":
            self.release(step, "drop")
            return
        if step.get("gate"):
            self.tell("wait", step=step["id"])
            while self.order(step) is None:
                self.check_stop()
                if self.followers.silence() > ABANDONED_S and not self.followers.connected:
                    raise Stop("nobody followed for %d s while it waited for its peer" % ABANDONED_S)
                self.sleep(UNWATCHED_S / 2 if self.trial else 60)
            if self.order(step) != "go":
                self.release(step, self.order(step))
                return
        try:
            os.makedirs(scratch, exist_ok=True)
            result, out = (
                self.trial.run(step, lambda: self.execute(step, scratch)) if self.trial else self.execute(step, scratch)
            )
        except OSError as error:
            result, out = (
                {"ended": "error", "reason": self.reason_of(error), "started": time.time(), "wall_s": 0.0},
                None,
            )
        if result["ended"] == "stopped":
            shutil.rmtree(out, ignore_errors=True)
            raise Stop(self.stopping or "asked to stop")
        self.save(step, result, out)

    def release(self, step, order):
        """End a step that does not run because of the controller's order."""
        ended, reason = RELEASED[order]
        self.save(step, {"ended": ended, "reason": reason, "started": time.time(), "wall_s": 0.0}, None)

    def reason_of(self, error):
        full = error.errno in FULL
        return "the disk of %s is full" % self.job["work"] if full else ("%s" % error)[:1000]

    def save(self, step, result, out):
        """Save a step atomically with one rename, then report it as finished."""
        final = os.path.join(self.folder, "steps", step["id"])
        result.update(id=step["id"])
        data = json.dumps(result).encode()
        out = out or final + ".part"
        try:
            if not os.path.isdir(out):
                os.mkdir(out)  # do not create parent folders: without them, the job was removed
            write_atomic(os.path.join(out, "result.json"), data)
        except OSError as error:
            self.drop_reserve()  # if the disk is full, the reserve holds one short result
            for name in os.listdir(out):
                os.unlink(os.path.join(out, name))
            result.update(ended="error", reason=self.reason_of(error))
            result.pop("telemetry", None)
            write_atomic(os.path.join(out, "result.json"), json.dumps(result).encode())
        os.rename(out, final)
        self.tell("end", step=step["id"], ended=result["ended"])

    # -- one step

    def execute(self, step, scratch):
        out = os.path.join(self.folder, "steps", step["id"] + ".part")
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        for device in step.get("exclusive", ()):
            # The kernel refuses O_EXCL on a block device that is mounted or held by md, lvm or another user.
            os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
        env = environment(step, scratch, self.job["campaign"])
        result = {
            "argv": container.command_of(step, step["argv"], env, scratch),
            "env": {k: ("(redacted)" if SECRET.search(k) else v) for k, v in env.items()},
            "load_before": os.getloadavg()[0],
        }
        server = None
        serve = step.get("serve")
        try:
            if not step["argv"]:
                result.update(self.attend(step))
                return result, out
            if serve:
                self.refuse_taken(serve["port"], step["workload"])
                server = self.spawn(
                    container.command_of(step, serve["argv"], env, scratch), env, scratch, out, "server."
                )
                self.until_listening(server, serve["port"])
            if step.get("port"):
                self.refuse_taken(step["port"], step["workload"])
            self.tell("begin", step=step["id"])
            result.update(self.watch(step, env, scratch, out, server))
        except Refused as refused:
            result.update(ended="error", reason=str(refused), started=time.time(), wall_s=0.0)
        finally:
            if server:
                self.end_server(step, server, env)
            # The client may have been ended by another process, or may never be watched.
            container.remove(step, env)
            reap_orphans()
            if step.get("gate") or result.get("ended") != "exit":
                end_marked(self.job["campaign"])
        if output_size(out) > OUTPUT_CAP:  # the step may print faster than its size is checked
            cut_outputs(out)
            if result.get("ended") == "exit":
                result.update(ended="flood", reason=FLOODED)
        left_out = collect(step, scratch, out)
        if left_out:
            result["left_out"] = left_out
        return result, out

    def attend(self, step):
        """Run no step until the host that leads a case reports its end.

        Telemetry continues, because the power of this host counts for the case.
        """
        sampler, devices = self.sampling()
        started, clock = time.time(), time.monotonic()
        sampler.start()
        devices.start()
        self.tell("begin", step=step["id"])
        self.tell("ready", step=step["id"])
        ended, reason = "timeout", "its leading host did not report the end"
        while time.monotonic() - clock < step["timeout_s"]:
            if self.leaves(step):
                ended, reason = "stopped", self.stopping
                break
            if self.order(step) in ("cancel", "drop"):
                ended, reason = "exit", None
                break
            self.sleep(min(GRACE_S if self.stopping else 60.0, step["timeout_s"]))
        wall = time.monotonic() - clock
        telemetry = sampled(sampler, devices.stop())
        return {"ended": ended, "reason": reason, "rc": 0, "started": started, "wall_s": wall, "telemetry": telemetry}

    def sampling(self):
        """Return the samplers of this host and of its accelerators."""
        interval = self.job.get("interval_s", 1.0)
        return Sampler(interval=interval), watch_of(interval)

    def spawn(self, argv, env, scratch, out, prefix=""):
        with open(os.path.join(out, prefix + "stdout"), "wb") as stdout:
            with open(os.path.join(out, prefix + "stderr"), "wb") as stderr:
                try:
                    child = subprocess.Popen(
                        argv,
                        stdin=subprocess.DEVNULL,
                        stdout=stdout,
                        stderr=stderr,
                        cwd=scratch,
                        env=env,
                        start_new_session=True,
                    )
                except OSError as error:
                    raise Refused("%s cannot be started: %s" % (argv[0], error.strerror)) from error
        with open(os.path.join(self.folder, "children"), "a") as file:
            file.write("%d %s\n" % (child.pid, born(child.pid)))
        return child

    def end_leftovers(self):
        """End the children of a runner that was killed during a step, if they are still the same processes."""
        try:
            with open(os.path.join(self.folder, "children")) as source:
                recorded = [line.split() for line in source]
        except OSError:
            return  # this is the first run of the job
        for pid, birth in recorded:
            if birth != "?" and born(int(pid)) == birth:
                os.killpg(int(pid), signal.SIGKILL)
        for step in {step.get("container"): step for step in self.job["steps"]}.values():
            container.remove(step, environment(step, self.folder, self.job["campaign"]))
        os.unlink(os.path.join(self.folder, "children"))

    def refuse_taken(self, port, workload):
        if listening(port):
            advice = "choose another with --set (fleetmark workloads %s shows its name)" % workload
            raise Refused("port %d is in use on this host: %s" % (port, advice))

    def until_listening(self, server, port):
        deadline = time.monotonic() + LISTENS_S
        while not listening(port):
            if self.stopping:
                raise Stop(self.stopping)
            if server.poll():  # 0: the server went to the background and remains a descendant
                raise Refused("its server ended at once with exit status %d" % server.returncode)
            if time.monotonic() > deadline:
                raise Refused("its server did not listen on port %d within %d s" % (port, LISTENS_S))
            time.sleep(0.01)

    def end_server(self, step, server, env, patience_s=0):
        if not ended_within(server, patience_s):
            container.remove(step, env)
        end(server)

    def watch(self, step, env, scratch, out, server=None):
        """Run the step's command with telemetry until its end, its timeout or a stop."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        sampler, devices = self.sampling()
        started, clock = time.time(), time.monotonic()
        child = self.spawn(container.command_of(step, step["argv"], env, scratch), env, scratch, out)
        sampler.start()
        devices.start()
        ended, reason = "exit", None
        announced = not step.get("port")
        if step.get("serves") and announced:  # all hosts of its group run the command and wait for each other
            self.tell("ready", step=step["id"])
        cancelled = None
        while child.poll() is None:
            spent = time.monotonic() - clock
            self.notice_unwatched()
            if self.leaves(step):
                ended, reason = "stopped", self.stopping
            elif spent > step["timeout_s"]:
                ended, reason = "timeout", "no end after %g s" % step["timeout_s"]
            elif output_size(out) > OUTPUT_CAP:
                ended, reason = "flood", FLOODED
            elif cancelled and time.monotonic() > cancelled:
                ended, reason = ("cancelled", None) if step.get("serves") else RELEASED["cancel"]
            if ended != "exit":
                break
            if not announced and listening(step["port"]):
                announced = True
                self.tell("ready", step=step["id"])
            if step.get("gate") and not cancelled and self.order(step) == "cancel":
                cancelled = time.monotonic() + (GRACE_S if step.get("ends", True) else 0)
            self.sleep(0.01 if not announced else min(1.0, max(0.01, step["timeout_s"] - spent)))
        if ended != "exit":
            container.remove(step, env)
        end(child)
        wall = time.monotonic() - clock
        accelerators = devices.stop()
        if server:
            self.end_server(step, server, env, GRACE_S if ended == "exit" and step["serve"].get("ends", True) else 0)
        reap_orphans()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        step_cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {
            "ended": ended,
            "reason": reason,
            "rc": child.returncode,
            "started": started,
            "wall_s": wall,
            "cpu_s": step_cpu_s,
            "max_rss": after.ru_maxrss * 1024,
            "telemetry": sampled(sampler, accelerators, step_cpu_s if container.is_counted(step) else None),
        }


def sampled(sampler, accelerators, step_cpu_s=None):
    """Return the telemetry of a step, including that of the host's accelerators if there are any."""
    telemetry = sampler.stop(step_cpu_s=step_cpu_s)
    if accelerators:
        telemetry["gpus"] = accelerators
    return telemetry


def trial_of(job, folder, keeper):
    """Return the trial of a job that tries a setting; None for other jobs."""
    if not job.get("setting"):
        return None
    from trial import Trial  # few jobs need it

    return Trial(folder, job["setting"], keeper)


class Refused(Exception):
    """Report why a step cannot begin."""


def environment(step, scratch, campaign):
    """Return the environment of a step's command: that of its workload, and a minimum from this process."""
    env = dict(step.get("env", {}))
    env.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    env.setdefault("HOME", os.path.expanduser("~"))
    if step.get("container"):
        env.update((name, os.environ[name]) for name in container.OF_ENGINE if name in os.environ and name not in env)
    if "SLURM_JOB_ID" in os.environ:  # srun must run a step's command within the current allocation
        env.setdefault("SLURM_OVERLAP", "1")
        for name in ("SLURM_JOB_ID", "SLURM_CONF"):
            if name in os.environ:
                env.setdefault(name, os.environ[name])
    env.update(LC_ALL="C", LANG="C", PWD=scratch, FLEETMARK_CAMPAIGN=campaign)
    return env


def main(folder, keeper=None):
    """Run the job in ``folder``; ``keeper``: the descriptor of the pipe to the keeper of a trial."""
    with open("/proc/self/comm", "w") as name:
        name.write("fleetmark-job")  # for ps and top
    runner = Runner(folder, keeper)
    try:
        runner.followers.take_lock()
        runner.enter_shares()
    except NotHeld as reason:
        sys.stdout.write("%s\n" % reason)
        return
    except Busy:
        sys.stdout.write("busy\n")
        return
    except OSError as error:
        sys.stdout.write("%s: cannot lock the work directory (%s)\n" % (runner.job["work"], error.strerror))
        return
    sys.stdout.write("started\n")
    sys.stdout.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the launcher waits only for the first line
    runner.run()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)

"""Start a multi-host step when all its hosts wait for it, and cancel it if one of them cannot join."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from fleetmark.campaign.hostrun import Run
from fleetmark.record.steps import Exchange, Step

Order = Literal["go", "skip", "fail", "cancel", "drop"]


class Exchanges:
    """Track the exchanges of a campaign by the host and id of each of their steps.

    A serving step belongs to one exchange, and a measuring step to any number. ``order`` sends an order for a step to
    its host. ``excuse`` also stores a reason in the archive.
    """

    def __init__(
        self,
        runs: Mapping[str, Run],
        exchanges: Sequence[Exchange],
        order: Callable[[Run, Order, str], None],
        excuse: Callable[[Run, Order, str, str], None],
    ) -> None:
        self.runs, self.order, self.excuse = runs, order, excuse
        self.by_step: dict[tuple[str, str], list[Exchange]] = {}
        for e in exchanges:
            self.by_step[e.server, e.server_step] = [e]
            self.by_step.setdefault((e.client, e.client_step), []).append(e)

    def part_of(self, host: str, step: str) -> Sequence[Exchange]:
        """Return the exchanges to which a host's step belongs."""
        return self.by_step.get((host, step), ())

    def meet_all(self, host: str, step: str) -> None:
        """Start or cancel the exchanges of a host's step if the state of their hosts allows it."""
        for exchange in self.part_of(host, step):
            self.meet(exchange)

    def meet(self, exchange: Exchange) -> None:
        """Start an exchange if all its hosts wait for it. Cancel it if one of them cannot join."""
        server, client = self.runs.get(exchange.server), self.runs.get(exchange.client)
        comes = [
            run is not None and run.phase != "over" and step in run.pending
            for run, step in ((server, exchange.server_step), (client, exchange.client_step))
        ]
        if server and client and all(comes):
            if client.waiting == exchange.client_step and self._all_ready(exchange):
                self.order(client, "go", exchange.client_step)
            elif client.waiting == exchange.client_step and self._all_waiting(exchange):
                for e in self.by_step[exchange.client, exchange.client_step]:
                    if self.runs[e.server].waiting == e.server_step:
                        self.order(self.runs[e.server], "go", e.server_step)
        elif server and comes[0]:  # the client of this server cannot join
            self.order(server, "cancel", exchange.server_step)
        elif client and comes[1] and not comes[0]:
            step = client.steps[exchange.client_step]
            role = "node" if step.members else "peer"
            reason = server.reason if server and server.reason else "it does not take part in this run"
            if client.waiting == step.id:
                if cannot := server.cannot.get(step.workload) if server else None:
                    self.excuse(client, "fail", step.id, f"its {role} {exchange.server} cannot take part: {cannot}")
                else:
                    self.excuse(client, "skip", step.id, f"its {role} {exchange.server} is not there: {reason}")
            elif step.members and server and server.phase == "over":  # the step would wait until its timeout
                self.excuse(client, "cancel", step.id, f"its node {exchange.server} was lost: {reason}")

    def _all_ready(self, exchange: Exchange) -> bool:
        every = self.by_step[exchange.client, exchange.client_step]
        return all(e.server in self.runs and self.runs[e.server].ready == e.server_step for e in every)

    def _all_waiting(self, exchange: Exchange) -> bool:
        """Return whether all servers of the step are waiting. If one started early, it would wait for the others."""
        every = self.by_step[exchange.client, exchange.client_step]
        runs = [(self.runs.get(e.server), e.server_step) for e in every]
        return all(run is not None and step in (run.waiting, run.ready) for run, step in runs)

    def server_ended(self, run: Run, step: Step, reason: str) -> None:
        """Skip the client's step if it still waits for the serving step that ended."""
        exchange = self.by_step[run.host, step.id][0]
        client = self.runs.get(exchange.client)
        if client and client.waiting == exchange.client_step:
            self.excuse(client, "skip", exchange.client_step, f"its server on {run.host}: {reason}")

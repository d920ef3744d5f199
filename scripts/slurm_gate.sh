#!/bin/sh
# Keeps jobs off a Slurm node that `fleetmark gate --format prometheus` did not accept, or does not name (docs/how-to/gate.md).
# HealthCheckProgram=, where the node is drained; Prolog=, where the job goes elsewhere and Slurm drains the node itself.
set -u
verdicts=${FLEETMARK_GATE:-$(dirname "$0")/gate.prom}
node=${SLURMD_NODENAME:-$(hostname -s)}
[ -r "$verdicts" ] || { echo "fleetmark gate: $verdicts cannot be read" >&2; exit 1; }  # says nothing of the node
grep -qxF "fleetmark_gate_accepted{host=\"$node\"} 1" "$verdicts" && exit 0
[ -z "${SLURM_JOB_ID:-}" ] || exit 1
exec scontrol update "NodeName=$node" State=DRAIN "Reason=fleetmark gate"

#!/bin/sh
# Runs SPEC's runcpu for one case, in the current folder:  run RUNCPU-OPTION...
# Leaves `report`, what the parser reads (the CSV, or the log where there is none), and everything else below out/.
# BIND: the CPUs in the order in which copies take them ("0-15,32-47"); empty: worked out here.
# The last line of standard error says which benchmark failed, how, and where it says why.
[ -n "${BASH_VERSION:-}" ] || ! command -v bash >/dev/null || exec bash "$0" "$@" # what shrc is written for
set -u
here=$(cd "$(dirname "$0")" && pwd -P)
work=$(pwd -P)
out=$work/out

newest() { # what is there of FILES, the last written first
    # shellcheck disable=SC2012
    ls -t "$@" 2>/dev/null | head -n 1
}

# The log lies in tmp until a run with preENV settings is over.
log_file() { newest "$out"/result/CPU20*.log "$out"/tmp/CPU20*/templogs/preenv.*; }

# CPUs as "0-3,8" to one a line.
# shellcheck disable=SC2020
numbers() { echo "$1" | tr ', ' '\n\n' | awk -F- 'NF { for (i = $1; i <= (NF > 1 ? $2 : $1); i++) print i }'; }

# The CPUs we may use, one a line: a thread of every core before any core's second, and in turn from each NUMA node.
cpus() {
    allowed=" $(numbers "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)" | tr '\n' ' ')"
    for folder in /sys/devices/system/cpu/cpu[0-9]*; do
        cpu=${folder##*/cpu}
        case $allowed in *" $cpu "*) ;; *) continue ;; esac
        node=$(echo "$folder"/node[0-9]*)
        case $node in *'*') node=0 ;; *) node=${node##*/node} ;; esac
        rank=0
        for sibling in $(numbers "$(cat "$folder/topology/thread_siblings_list" 2>/dev/null || echo "$cpu")"); do
            case $allowed in *" $sibling "*) [ "$sibling" -ge "$cpu" ] || rank=$((rank + 1)) ;; esac
        done
        echo "$rank $node $cpu"
    done | sort -n -k1,1 -k2,2 -k3,3 | awk '{ print $1, n[$1, $2]++, $2, $3 }' | sort -n -k1,1 -k2,2 -k3,3 | cut -d ' ' -f 4
}

# Config lines that bind each copy to a CPU of its own, with its memory near it; none where nothing here can bind.
bindings() {
    if numactl --localalloc true 2>/dev/null; then
        bind="numactl --localalloc --physcpubind="
    elif taskset -c "$(cpus | head -n 1)" true 2>/dev/null; then
        bind="taskset -c "
    else
        return 0
    fi
    # shellcheck disable=SC2016  # runcpu puts in its own
    printf '\nintrate,fprate:\n   submit = %s$BIND $command\n' "$bind"
    if [ -n "${BIND:-}" ]; then numbers "$BIND"; else cpus; fi | awk '{ print "   bind" NR - 1 " = " $1 }'
}

# runcpu writes what it built into its config file: ours is a copy that all steps in this folder share.
make_config() {
    if [ -e "$here/user.cfg" ]; then cat "$here/user.cfg"; else cat "$here/fleetmark.cfg" && bindings; fi
}

collect() {
    report=$(newest "$out"/result/CPU20*.csv)
    [ -n "$report" ] || report=$(log_file)
    [ -z "$report" ] || cp "$report" "$work/report"
}

# "BENCHMARK TUNE CODE" for each run that failed: from the report's full table, and from the log.
failures() {
    csv=$(newest "$out"/result/CPU20*.csv)
    log=$(log_file)
    {
        [ -z "$csv" ] || awk -F, '/^"?Selected Results/ { exit }
            /^[0-9][0-9][0-9]\./ { print $1, "base", $6; print $1, "peak", $11 }' "$csv"
        [ -z "$log" ] || sed -n 's/^ *Error \([0-9]*\.[A-Za-z0-9_]*\) \([a-z]*\) .*errorcode=\([A-Z]*\).*/\1 \2 \3/p
            s/^\*\*\* Error building \([0-9]*\.[A-Za-z0-9_]*\) \([a-z]*\).*/\1 \2 CE/p' "$log"
    } | awk '$3 ~ /^(CE|RE|VE|SE|TE)$/ && !seen[$1, $2]++'
}

# runcpu's last complaint, where no benchmark is to blame; what it printed is a file where a runner keeps it.
complaint() {
    said=/proc/$$/fd/1
    [ -f "$said" ] || said=/dev/null
    log=$(log_file)
    grep -hiE 'error' ${log:+"$log"} "$said" 2>/dev/null | tail -n 1
}

in_words() {
    case $1 in
        CE) echo "compile error" ;;
        RE) echo "run-time error" ;;
        VE) echo "verification error" ;;
        SE) echo "set-up error" ;;
        TE) echo "tool error" ;;
    esac
}

# What compiler or program said, beside the report: BENCHMARK TUNE CODE.
explain() {
    case $3 in
        CE) set -- "$@" "$out/benchspec/CPU/$1/build/build_$2"_*/make*.out ;;
        VE) set -- "$@" "$out/benchspec/CPU/$1/run/run_$2"_*/*.mis ;;
        *) set -- "$@" "$out/benchspec/CPU/$1/run/run_$2"_*/*.err ;;
    esac
    why=$1.$2.why
    shift 3
    for file; do [ ! -s "$file" ] || { echo "==> ${file#"$out/"}"; head -c 65536 "$file"; }; done >"$out/result/$why" 2>/dev/null
    [ -s "$out/result/$why" ] || rm -f "$out/result/$why"
}

trap 'collect; exit 143' TERM
rm -rf "$work/report" "$out/result" "$out/tmp" "$out"/benchspec/CPU/*/run
mkdir -p "$out"
if [ ! -e config.cfg ]; then make_config >config.cfg.part && mv config.cfg.part config.cfg; fi
# shellcheck disable=SC3045  # every sh of Linux has it
ulimit -s unlimited 2>/dev/null || ulimit -s "$(ulimit -H -s)" 2>/dev/null

(
    set +u
    unset BIND
    cd "$here/tree" || { echo "the tree $(readlink "$here/tree") is gone from this host: install it again" >&2; exit 1; }
    # shellcheck source=/dev/null
    . ./shrc >/dev/null
    cd "$work" || exit 1
    exec runcpu --config="$work/config.cfg" --output_root="$out" "$@"
) &
wait $!
rc=$?
collect
failed=$(failures)
if [ -n "$failed" ]; then
    said=
    while read -r benchmark tune code; do
        explain "$benchmark" "$tune" "$code"
        said="$said$benchmark $tune: $code, $(in_words "$code"); "
    done <<EOL
$failed
EOL
    log=$(log_file)
    echo "${said}see ${log##*/} and the .why files beside this" >&2
    rc=1
elif [ "$rc" -ne 0 ]; then
    why=$(complaint) # not straight to standard error: there it would look for what was printed
    [ -z "$why" ] || echo "$why" >&2
fi
rm -rf "$out"/benchspec/CPU/*/run
exit "$rc"

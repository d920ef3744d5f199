# Says what the host has, as JSON: look.sh TREE STORE BENCHMARK RELEASE CC CXX FC
# TREE: a folder with an installed SPEC CPU, or empty for the one below STORE. BENCHMARK: one that only this release has.
# CC, CXX, FC: the compilers, empty where a config file of the user's names them.
# The last line of standard error says what is wrong and what to do.
set -eu
export LC_ALL=C
tree=$1 store=$2 benchmark=$3 release=$4 cc=$5 cxx=$6 fc=$7

fail() { echo "$*" >&2; exit 1; }

installed=true
if [ -n "$tree" ]; then
    [ -r "$tree/shrc" ] && [ -x "$tree/bin/runcpu" ] ||
        fail "tree $tree holds no installed SPEC CPU (no shrc, no bin/runcpu): give the folder that install.sh was told, or the medium by iso"
    [ -d "$tree/benchspec/CPU/$benchmark" ] ||
        fail "tree $tree is not SPEC CPU $release (it has no benchspec/CPU/$benchmark): use the workload of its own release"
elif [ ! -e "$store/complete" ]; then
    installed=false
fi

gcc=0 compiler="compilers that its config file names"
if [ -n "$cc" ]; then
    for c in "$cc" "$cxx" "$fc"; do
        command -v "${c%% *}" >/dev/null ||
            fail "no ${c%% *} on this host: install it, or name the compilers that are there by cc, cxx and fc"
    done
    # shellcheck disable=SC2086  # a command and its options
    compiler=$($cc --version 2>/dev/null | head -n 1 | tr -d '\\"')
    # shellcheck disable=SC2086
    macros=$(echo | $cc -dM -E -x c - 2>/dev/null) || macros=
    case $macros in
        *__clang__*) ;;
        *) gcc=$(echo "$macros" | awk '$2 == "__GNUC__" { print $3; found = 1 } END { if (!found) print 0 }') ;;
    esac
fi
cpus=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || cpus=1
printf '{"installed": %s, "gcc": %s, "compiler": "%s", "arch": "%s", "cpus": %s}\n' \
    "$installed" "$gcc" "$compiler" "$(uname -m)" "$cpus"

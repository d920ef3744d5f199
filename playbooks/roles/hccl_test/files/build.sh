# Builds hccl_test on a host from the sources in its CANN toolkit: build.sh DEST TOOLKIT_HOME MPI_HOME
# What MPI_HOME leaves empty is looked for. The programs appear in DEST when all are built, all_reduce_test last.
# Prints "built ..." or "present". The last line of standard error says what is wrong and what to do.
set -eu
export LC_ALL=C
dest=$1 toolkit=$2 mpi_home=$3

fail() { echo "$*" >&2; exit 1; }

if [ -x "$dest/all_reduce_test" ]; then
    echo present
    exit 0
fi
mkdir -p "$dest"
rm -rf "$dest"/.build.* # of a build that was cut off
work=$(mktemp -d "$dest/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT

[ -d "$toolkit" ] || fail "there is no CANN toolkit in $toolkit on this host: install it, or set toolkit_home to where it lies"
source=$toolkit/tools/hccl_test
[ -f "$source/Makefile" ] || fail "$toolkit holds no tools/hccl_test: install the whole toolkit of CANN, or set path to built programs"
if [ -z "$mpi_home" ]; then
    run=$(command -v mpirun) || fail "no mpirun on this host: install MPICH or Open MPI, or set mpi_home to where it lies"
    mpi_home=$(dirname "$(dirname "$(readlink -f "$run")")")
fi
[ -x "$mpi_home/bin/mpirun" ] || fail "mpi_home $mpi_home holds no bin/mpirun: set it to where MPI lies on this host"

cp -R "$source/." "$work/"
if ! make -C "$work" MPI_HOME="$mpi_home" ASCEND_DIR="$toolkit" >"$work/said" 2>&1; then
    cat "$work/said" >&2
    why=$(grep -m 1 -iE 'error|fatal|undefined|cannot find|not found|no such file' "$work/said" || tail -n 1 "$work/said")
    fail "make could not build hccl_test: $(echo "$why" | sed "s|$work/||g")"
fi
[ -x "$work/bin/all_reduce_test" ] || fail "make built no bin/all_reduce_test: are these the sources of hccl_test?"
mv "$work/bin/all_reduce_test" "$work/first"
mv -f "$work"/bin/*_test "$dest/" 2>/dev/null || true # none but the first
mv "$work/first" "$dest/all_reduce_test"
echo "built with $toolkit and $mpi_home"

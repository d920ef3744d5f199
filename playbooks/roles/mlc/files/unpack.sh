# Puts MLC into DEST/mlc, and run.py, which comes on standard input, beside it: unpack.sh DEST TARBALL PATH
# TARBALL is the name of what lies in DEST/tarball; where it is empty, PATH names another folder the host has MLC.
# DEST/mlc comes last. The last line of standard error says what is wrong and what to do.
set -eu
export LC_ALL=C
dest=$1 tarball=$2 path=$3

fail() { echo "$*" >&2; exit 1; }

mkdir -p "$dest"
trap 'rm -f "$dest/tarball" "$dest/new"' EXIT
cat >"$dest/run.py"

if [ -n "$tarball" ]; then
    from=$tarball
    tar -tf "$dest/tarball" >"$dest/new" 2>/dev/null || fail "$tarball is not a tar archive: give Intel's mlc_v3.x.tgz as mlc.tarball"
    # Releases differ: Linux/mlc, below a folder of their own or not; beside it mlc_avx512 until 3.8, or mlc_internal.
    for name in '[Ll]inux/mlc' mlc mlc_internal mlc_avx512 ''; do
        [ -n "$name" ] || fail "$tarball holds no program mlc for Linux: give Intel's mlc_v3.x.tgz as mlc.tarball"
        member=$(grep -m 1 -E "(^|/)$name\$" "$dest/new") && break
    done
    tar -xOf "$dest/tarball" "$member" >"$dest/new" || fail "could not unpack $member from $tarball: is this host's disk full?"
    chmod 755 "$dest/new"
else
    from=$path
    if [ ! -f "$path" ] || [ ! -x "$path" ]; then
        fail "mlc.path: $path is not a program that $(id -un) may run on this host: put MLC there, or set mlc.tarball"
    fi
    ln -s -f "$path" "$dest/new"
fi

said=$(timeout 30 "$dest/new" --help 2>&1 </dev/null) || true # its status says nothing
case $said in
    *"Memory Latency Checker"* | *latency_matrix*) ;;
    *) fail "MLC of $from does not start on this host: $(echo "${said:-it says nothing}" | tail -n 1)" ;;
esac
mv -f "$dest/new" "$dest/mlc"

# Builds STREAM on a host from the source on standard input:
#   build.sh DEST CC CFLAGS OFFICIAL SHA256 ARRAY_ELEMENTS NTIMES
# OFFICIAL is empty for Fleetmark's kernels, which take size and passes at run time; McCalpin's stream.c has them compiled in.
# Prints "built" or "present". The last line of standard error says what is wrong and what to do.
set -eu
export LC_ALL=C
dest=$1 cc=$2 cflags=$3 official=$4 sha256=$5 elements=$6 ntimes=$7

fail() { echo "$*" >&2; exit 1; }

# Without arguments Fleetmark's kernels only say how they are used: whatever else comes out is not a program for this CPU.
starts() { rc=0; "$1" >/dev/null 2>&1 || rc=$?; [ "$rc" -eq 2 ]; }

if [ -x "$dest/stream" ]; then
    if [ -n "$official" ] || starts "$dest/stream"; then
        echo present
        exit 0
    fi
fi

command -v "${cc%% *}" >/dev/null || fail "no ${cc%% *} on this host: apt-get install gcc libc6-dev (dnf install gcc," \
    "zypper install gcc, apk add gcc musl-dev), or set stream.cc to a compiler that is there"

mkdir -p "$dest"
work=$(mktemp -d "$dest/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/stream.c"
[ -s "$work/stream.c" ] || fail "stream.source $official is empty or was not found where fleetmark runs: give the path of stream.c there"
if [ -n "$sha256" ]; then
    found=$(sha256sum "$work/stream.c" | cut -d ' ' -f 1)
    [ "$found" = "$sha256" ] || fail "stream.source $official has sha256 $found, not $sha256: check stream.source_sha256, or fetch it again"
fi

defines=
if [ -n "$official" ]; then
    defines="-DSTREAM_ARRAY_SIZE=$elements -DNTIMES=$ntimes"
    # Its arrays are static: beyond 2 GiB in all they lie out of reach of the compilers' default memory model.
    if [ $((elements * 24)) -gt 2000000000 ]; then
        case $(uname -m) in
            x86_64) defines="$defines -mcmodel=medium" ;;
            aarch64) defines="$defines -mcmodel=large -fno-pic -no-pie" ;;
        esac
    fi
fi
# shellcheck disable=SC2086  # cc, cflags and defines are lists of words
if ! $cc $cflags $defines "$work/stream.c" -o "$work/stream" -lm 2>"$work/said"; then
    cat "$work/said" >&2
    why=$(grep -m 1 -E 'error|undefined|cannot find|not found' "$work/said" || tail -n 1 "$work/said")
    fail "${cc%% *} could not build STREAM with stream.cflags '$cflags': $(echo "$why" | sed "s|$work/||")"
fi
[ -n "$official" ] || starts "$work/stream" || fail "${cc%% *} built a STREAM that does not start on this host: set stream.cflags without -march=native"
mv -f "$work/stream" "$dest/stream"
echo built

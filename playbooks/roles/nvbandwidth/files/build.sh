# Builds nvbandwidth on a host from DEST/source.tar: build.sh DEST TOOLKIT_HOME "CMAKE_ARG..."
# TOOLKIT_HOME may be empty: then nvcc is looked for. Prints "built ..." or "present".
# The last line of standard error says what is wrong and what to do.
set -eu
export LC_ALL=C
dest=$1 toolkit=$2 cmake_args=$3
PATH=$PATH:/usr/local/cuda/bin

fail() { echo "$*" >&2; exit 1; }

if [ -x "$dest/nvbandwidth" ]; then
    echo present
    exit 0
fi
rm -rf "$dest"/.build.* # of a build that was cut off
work=$(mktemp -d "$dest/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT

mkdir "$work/tree"
tar -xf "$dest/source.tar" -C "$work/tree" 2>"$work/log" ||
    fail "the sources of nvbandwidth are no tar archive that can be unpacked here: $(head -n 1 "$work/log")"
source=
for file in "$work/tree/CMakeLists.txt" "$work"/tree/*/CMakeLists.txt; do
    [ -n "$source" ] || [ ! -f "$file" ] || source=${file%/CMakeLists.txt}
done
[ -n "$source" ] || fail "the sources of nvbandwidth hold no CMakeLists.txt, neither on top nor in a folder there"

if [ -z "$toolkit" ]; then
    nvcc=$(command -v nvcc) ||
        fail "no nvcc on this host: install the CUDA toolkit here, or set toolkit_home to where it lies, or path to a built nvbandwidth"
    toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
fi
[ -x "$toolkit/bin/nvcc" ] || fail "toolkit_home $toolkit holds no bin/nvcc: set it to where CUDA lies on this host"

# For the GPUs of this host alone.
arches=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d '. ' | sort -u | paste -s -d ';')
set -- -DCMAKE_CUDA_COMPILER="$toolkit/bin/nvcc" ${arches:+"-DCMAKE_CUDA_ARCHITECTURES=$arches"}

# shellcheck disable=SC2086  # cmake_args is a list of words
if ! { cmake -S "$source" -B "$work/build" "$@" $cmake_args && cmake --build "$work/build" -j "$(nproc)"; } >"$work/log" 2>&1; then
    cat "$work/log" >&2
    if grep -qiE 'boost' "$work/log" && grep -qiE 'could not find|not found' "$work/log"; then
        fail "nvbandwidth needs Boost's program_options: install libboost-program-options-dev (boost-devel) on this host"
    fi
    why=$(grep -m 1 -iE 'error|fatal|undefined|cannot find|not found|no such file' "$work/log" || tail -n 1 "$work/log")
    fail "cmake could not build nvbandwidth: $(echo "$why" | sed "s|$work/||g")"
fi
[ -x "$work/build/nvbandwidth" ] || fail "cmake built no nvbandwidth: are these its sources?"
mv "$work/build/nvbandwidth" "$dest/nvbandwidth"
rm -f "$dest/source.tar"
echo "built with $toolkit${arches:+ for $arches}"

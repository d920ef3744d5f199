# Builds nccl-tests or rccl-tests on a host from DEST/source.tar:
#   build.sh DEST nccl|rccl TOOLKIT_HOME LIBRARY_HOME MPI_HOME mpi|alone "MAKE_ARG..."
# What is given empty is looked for. The programs appear in DEST when all are built, all_reduce_perf last.
# Prints "built ..." or "present". The last line of standard error says what is wrong and what to do.
set -eu
export LC_ALL=C
dest=$1 library=$2 toolkit=$3 home=$4 mpi_home=$5 with=$6 make_args=$7
PATH=$PATH:/usr/local/cuda/bin:/opt/rocm/bin

fail() { echo "$*" >&2; exit 1; }

if [ -x "$dest/all_reduce_perf" ]; then
    echo present
    exit 0
fi
rm -rf "$dest"/.build.* # of a build that was cut off
work=$(mktemp -d "$dest/.build.XXXXXX")
trap 'rm -rf "$work"' EXIT

mkdir "$work/tree"
tar -xf "$dest/source.tar" -C "$work/tree" 2>"$work/said" ||
    fail "the sources of $library-tests are no tar archive that can be unpacked here: $(head -n 1 "$work/said")"
source=
for file in "$work/tree/Makefile" "$work"/tree/*/Makefile; do
    [ -n "$source" ] || [ ! -f "$file" ] || source=${file%/Makefile}
done
[ -n "$source" ] || fail "the sources of $library-tests hold no Makefile, neither on top nor in a folder there"

# The compiler: what lies around it is its toolkit.
case $library in
    nccl) compiler=nvcc what=CUDA ;;
    rccl) compiler=hipcc what=ROCm ;;
esac
if [ -z "$toolkit" ]; then
    found=$(command -v "$compiler") ||
        fail "no $compiler on this host: install $what's compiler here, or set toolkit_home to where it lies"
    toolkit=$(dirname "$(dirname "$(readlink -f "$found")")")
fi
[ -x "$toolkit/bin/$compiler" ] || fail "toolkit_home $toolkit holds no bin/$compiler: set it to where $what lies on this host"
PATH=$toolkit/bin:$PATH

# The library and its headers, linked into a folder laid out as the Makefile wants it, whatever lies where on this host.
first() { # the first of its arguments that is there
    for file in "$@"; do
        [ ! -e "$file" ] || { echo "$file"; return; }
    done
}
# shellcheck disable=SC2086  # patterns
first_library() { # the first of the libraries $1... in the first of the folders $folders that has one
    for folder in $folders; do
        for name in "$@"; do
            file=$(first "$folder"/lib/$name "$folder"/lib64/$name "$folder"/lib/*-linux-gnu/$name "$folder"/$name)
            [ -z "$file" ] || { echo "$file"; return; }
        done
    done
}
folders=${home:-"$toolkit /usr /usr/local $(echo /usr/local/nccl*)"}
header=
for folder in $folders; do
    header=${header:-$(first "$folder/include/$library.h" "$folder/include/$library/$library.h")}
done
[ -n "$header" ] || fail "no $library.h in ${home:-the usual places of this host}: install $library's headers (libnccl-dev, libnccl-devel," \
    "rccl-dev), or set library_home to the folder that holds its include and lib"
object=$(first_library "lib$library.so" "lib$library.so.*")
[ -n "$object" ] || fail "no lib$library.so in ${home:-the usual places of this host}: install it, or set library_home"
mkdir -p "$work/home/include" "$work/home/lib" "$work/mpi/include" "$work/mpi/lib"
case $header in
    */"$library/$library.h") ln -s "${header%/*}" "$work/home/include/" ;;
    *) ln -s "${header%/*}/$library"* "$work/home/include/" ;;
esac
ln -s "$object" "$work/home/lib/lib$library.so"
run_path=${object%/*}:$toolkit/lib64:$toolkit/lib

# MPI, as its own compiler script names another folder it lies.
set --
if [ "$with" = mpi ]; then
    wrapper=$mpi_home/bin/mpicc
    [ -n "$mpi_home" ] || wrapper=$(first "$(command -v mpicc || true)" /usr/lib64/openmpi/bin/mpicc /usr/lib64/mpich/bin/mpicc)
    headers=
    folders=
    for word in $("$wrapper" -show 2>/dev/null | tr -d '"') ${mpi_home:+"-I$mpi_home/include" "-L$mpi_home"} -I/usr/include -L/usr; do
        case $word in
            -I*) headers=${headers:-$(first "${word#-I}/mpi.h")} ;;
            -L*) folders="$folders ${word#-L}" ;;
        esac
    done
    [ -n "$headers" ] || fail "MPI's headers are not on this host: install them (libopenmpi-dev, openmpi-devel), set mpi_home to the folder" \
        "that holds its include and lib, or measure host by host with nodes=1"
    object=$(first_library libmpi.so libmpich.so "libmpi.so.*" "libmpich.so.*")
    [ -n "$object" ] || fail "MPI's headers are on this host (${headers%/*}), its library libmpi.so is not: install it, or set mpi_home"
    [ "$headers" = /usr/include/mpi.h ] || { rmdir "$work/mpi/include" && ln -s "${headers%/*}" "$work/mpi/include"; }
    ln -s "$object" "$work/mpi/lib/libmpi.so"
    run_path=$run_path:${object%/*}
    set -- MPI=1 "MPI_HOME=$work/mpi"
fi

# For the GPUs of this host alone: for all that there are it takes more than twice as long.
if [ "$library" = nccl ]; then
    known=$(nvcc --list-gpu-arch 2>/dev/null || true)
    gencode=
    for arch in $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d '. ' | sort -u); do
        echo "$known" | grep -qx "compute_$arch" || { gencode= && break; }
        gencode="$gencode -gencode=arch=compute_$arch,code=sm_$arch"
    done
    [ -z "$gencode" ] || set -- "$@" "NVCC_GENCODE=$gencode"
fi

# The programs look for the libraries where they lie now: GNU's linker is told by the first, hipcc's by the second.
export LD_RUN_PATH="$run_path" HIPCC_LINK_FLAGS_APPEND="-Wl,-rpath,$run_path"
# shellcheck disable=SC2086  # make_args is a list of words
if ! make -C "$source" -j "$(nproc)" BUILDDIR="$work/build" CUDA_HOME="$toolkit" ROCM_PATH="$toolkit" NCCL_HOME="$work/home" \
    CUSTOM_RCCL_LIB="$work/home/lib" \
    "$@" $make_args >"$work/said" 2>&1; then
    cat "$work/said" >&2
    why=$(grep -m 1 -iE 'error|fatal|undefined|cannot find|not found|no such file' "$work/said" || tail -n 1 "$work/said")
    fail "make could not build $library-tests: $(echo "$why" | sed "s|$work/||g")"
fi
[ -x "$work/build/all_reduce_perf" ] || fail "make built no all_reduce_perf: are these the sources of $library-tests?"
lacks=$(ldd "$work/build/all_reduce_perf" 2>/dev/null | sed -n 's/^[[:space:]]*\(.* not found\).*/\1/p' | head -n 1)
[ -z "$lacks" ] || fail "$library-tests is built, yet does not start here: $lacks; install that library"

mv "$work/build/all_reduce_perf" "$work/first"
mv -f "$work"/build/*_perf "$dest/"
mv "$work/first" "$dest/all_reduce_perf"
rm -f "$dest/source.tar"
echo "built with $toolkit, $header$([ "$with" != mpi ] || echo ", $headers")"

# Makes a test host look like a GPU server: host.sh nccl|rccl VERSION, such as nccl 2.21.5
set -eu
library=$1 version=$2
major=${version%%.*} rest=${version#*.}
number=$((major * 10000 + ${rest%%.*} * 100 + ${rest#*.}))

command_() { cat >"$1" && chmod 755 "$1"; }

if [ "$library" = nccl ]; then
    place=/usr folder=/usr/lib/$(gcc -dumpmachine) compiler=/usr/local/cuda/bin/nvcc header=/usr/include/nccl.h
    rm -rf /usr/local/cuda /usr/local/bin/nvcc
    mkdir -p /usr/local/cuda/bin
    command_ /usr/local/bin/nvidia-smi <<'X'
#!/bin/sh
gpu() {
    echo "<gpu id=\"00000000:$1:00.0\"><product_name>NVIDIA H100 80GB HBM3</product_name><persistence_mode>Enabled</persistence_mode>"
    echo "<fb_memory_usage><total>81559 MiB</total></fb_memory_usage></gpu>"
}
case $* in
    "-q -x") echo "<?xml version=\"1.0\" ?><!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\"><nvidia_smi_log>"
        echo "<driver_version>570.86.15</driver_version><cuda_version>12.8</cuda_version><attached_gpus>2</attached_gpus>"
        gpu 1B
        gpu 43
        echo "</nvidia_smi_log>" ;;
    *compute_cap*) printf '9.0\n9.0\n' ;;
    "topo -m") printf '\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\t0-1\t0\nGPU1\tNV18\t X \t0-1\t0\n' ;;
    *) exit 6 ;;
esac
X
else
    place=/opt/rocm folder=/opt/rocm/lib compiler=/opt/rocm/bin/hipcc header=/opt/rocm/include/rccl/rccl.h
    mkdir -p /opt/rocm/bin /opt/rocm/lib /opt/rocm/include/rccl /opt/rocm/.info
    echo 6.2.0-66 >/opt/rocm/.info/version
    command_ /opt/rocm/bin/rocm-smi <<'X'
#!/bin/sh
card() { echo "\"card$1\": {\"Card Series\": \"AMD Instinct MI300X\", \"VRAM Total Memory (B)\": \"206141652992\"}"; }
echo "{$(card 0), $(card 1), \"system\": {\"Driver version\": \"6.8.5\"}}"
X
fi
command_ "$compiler" <<'X'
#!/bin/sh
# gcc, but for what only a GPU's compiler understands; it notes how it was called.
echo "$*" >>/var/tmp/compiler.log
case $1 in
    --version) echo "Cuda compilation tools, release 12.8, V12.8.93"; exit ;;
    --list-gpu-arch) printf 'compute_80\ncompute_90\n'; exit ;;
esac
n=$#
while [ "$n" -gt 0 ]; do
    case $1 in -gencode=*) ;; *) set -- "$@" "$1" ;; esac
    shift
    n=$((n - 1))
done
# shellcheck disable=SC2086  # hipcc's own variable, a list of words
exec gcc "$@" $HIPCC_LINK_FLAGS_APPEND
X
echo "int ncclGetVersion(int *version);" >"$header"
rm -f "$folder/lib$library".so*
echo "int ncclGetVersion(int *version) { *version = $number; return 0; }" |
    gcc -shared -fPIC -o "$folder/lib$library.so.$version" "-Wl,-soname,lib$library.so.$major" -x c -
ln -s "lib$library.so.$version" "$folder/lib$library.so.$major"
ln -s "lib$library.so.$major" "$folder/lib$library.so"
ldconfig
[ -d "$place" ]

include=$(mpicc --showme:incdirs | cut -d ' ' -f 1)
libraries=$(mpicc --showme:libdirs | cut -d ' ' -f 1)
if [ ! -e "$include/mpi.h" ]; then
    mkdir -p "$include" "$libraries"
    cat >"$include/mpi.h" <<'X'
/* As much of Open MPI's interface as perf.c calls. */
typedef struct ompi_communicator_t *MPI_Comm;
typedef struct ompi_datatype_t *MPI_Datatype;
extern struct ompi_predefined_communicator_t ompi_mpi_comm_world;
extern struct ompi_predefined_datatype_t ompi_mpi_byte;
#define MPI_COMM_WORLD ((MPI_Comm)(void *)&ompi_mpi_comm_world)
#define MPI_BYTE ((MPI_Datatype)(void *)&ompi_mpi_byte)
int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
int MPI_Barrier(MPI_Comm comm);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Gather(const void *from, int count, MPI_Datatype type, void *to, int counts, MPI_Datatype types, int root, MPI_Comm comm);
X
    ln -sf "$(ldconfig -p | sed -n 's/.*libmpi\.so\.[0-9]* .*=> //p' | head -n 1)" "$libraries/libmpi.so"
fi

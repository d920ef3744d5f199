/* Plays one of nccl-tests' programs: the collective it is named after, as true MPI ranks, with made-up times. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef MPI_SUPPORT
#include "mpi.h"
#endif

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

int ncclGetVersion(int *version); /* of the library that the host really loads */

typedef struct {
    char host[64];
    char algo[64];
    int pid, device;
} who;

static const struct {
    const char *name;
    int share, reduces, root; /* share: the counted elements are a rank's part of the size */
} known[] = {{"all_reduce", 0, 1, -1}, {"all_gather", 1, 0, -1}, {"reduce_scatter", 1, 1, -1}, {"alltoall", 1, 0, -1},
             {"broadcast", 0, 0, 0},   {"reduce", 0, 1, 0},      {"gather", 1, 0, 0},          {"scatter", 1, 0, 0},
             {"sendrecv", 0, 0, -1},   {"hypercube", 1, 0, -1}};

static double factor(const char *name, double n)
{
    if (!strcmp(name, "all_reduce"))
        return 2 * (n - 1) / n;
    if (!strcmp(name, "broadcast") || !strcmp(name, "reduce") || !strcmp(name, "sendrecv"))
        return 1;
    return (n - 1) / n;
}

static long option(int argc, char **argv, const char *name, long otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], name))
            return atol(argv[i + 1]);
    return otherwise;
}

int main(int argc, char **argv)
{
    int rank = 0, size = 1, version = 0;
#ifdef MPI_SUPPORT
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#endif
    char name[64];
    snprintf(name, sizeof name, "%s", strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0]);
    if (strstr(name, "_perf"))
        *strstr(name, "_perf") = 0;
    unsigned kind = 0;
    while (kind < sizeof known / sizeof *known - 1 && strcmp(known[kind].name, name))
        kind++;
    ncclGetVersion(&version);
    long threads = option(argc, argv, "-t", 1), gpus = option(argc, argv, "-g", 1);
    long least = option(argc, argv, "-b", 32), most = option(argc, argv, "-e", 32), step = option(argc, argv, "-f", 2);

    who me = {.pid = getpid()}, *all = calloc(size, sizeof *all);
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_RANK"), *algo = getenv("NCCL_ALGO");
    me.device = local ? atoi(local) : getenv("SLURM_LOCALID") ? atoi(getenv("SLURM_LOCALID")) : 0;
    gethostname(me.host, sizeof me.host);
    snprintf(me.algo, sizeof me.algo, "%s", algo ? algo : "");
    if (getenv("STANDIN_DIE") && !strcmp(getenv("STANDIN_DIE"), me.host)) {
        printf("%s: Test NCCL failure common.cu:1005 'unhandled system error (run with NCCL_DEBUG=INFO for details) / '\n"
               " .. %s pid %d: Test failure common.cu:891\n", me.host, me.host, me.pid);
        fflush(stdout);
        _exit(3);
    }
    all[0] = me;
#ifdef MPI_SUPPORT
    MPI_Gather(&me, sizeof me, MPI_BYTE, all, sizeof me, MPI_BYTE, 0, MPI_COMM_WORLD);
#endif
    double ranks = (double)size * threads * gpus;
    if (rank == 0) {
        if (!strcmp(TEXT(LIBRARY), "nccl"))
            printf("# nccl-tests version 2.17.8 nccl-headers=%d nccl-library=%d\n# Collective test starting: %s_perf\n", version,
                   version, name);
        printf("# nThread %ld nGpus %ld minBytes %ld maxBytes %ld step: %ld(factor) warmup iters: %ld iters: %ld agg iters: 1 "
               "validation: %ld graph: 0\n#\n", threads, gpus, least, most, step, option(argc, argv, "-w", 1),
               option(argc, argv, "-n", 20), option(argc, argv, "-c", 1));
        if (strcmp(TEXT(LIBRARY), "nccl"))
            printf("rccl-tests: Version develop:83d38d9\n");
        printf("# Using devices\n");
        for (int r = 0; r < (int)ranks; r++) {
            who w = all[r / (threads * gpus)];
            printf("#  Rank %2d Group  0 Pid %6d on %10s device %2ld [0000:%02lx:00] %s\n", r, w.pid, w.host,
                   w.device + r % (threads * gpus), 0x1b + w.device + r % (threads * gpus),
                   strcmp(TEXT(LIBRARY), "nccl") ? "AMD Instinct MI300X" : "NVIDIA H100 80GB HBM3");
            if (strcmp(w.algo, me.algo)) {
                printf("%s: Test NCCL failure: rank %d has NCCL_ALGO '%s', rank 0 '%s'\n", w.host, r, w.algo, me.algo);
                return 3;
            }
        }
        fflush(stdout);
    }
    while (getenv("STANDIN_HANG"))
        pause();
    int slow = 0;
    FILE *file = fopen("/run/standin-slow", "r");
    if (file && fscanf(file, "%d", &slow) == 1)
        sleep(slow);
    int wrong = 0;
    if (rank == 0) {
        printf("#\n%87s%44s\n", "out-of-place", "in-place");
        printf("#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n"
               "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n");
        double rate = strcmp(me.algo, "Tree") ? 100e3 : 50e3, sum = 0; /* bytes in a microsecond */
        int rows = 0;
        for (long want = least; want <= most; want *= step) {
            long count = want / 4 / (known[kind].share ? (long)ranks : 1);
            long bytes = count * 4 * (known[kind].share ? (long)ranks : 1);
            wrong = getenv("STANDIN_WRONG") && want * step > most ? 3 : 0;
            printf("%12ld  %12ld     float  %6s  %6d", bytes, count, known[kind].reduces ? "sum" : "none", known[kind].root);
            for (int place = 0; place < 2; place++) {
                double us = (place ? 9.5 : 10) + bytes / rate, algbw = bytes / us / 1e3, busbw = algbw * factor(name, ranks);
                printf("  %7.2f  %6.2f  %6.2f  %6d", us, algbw, busbw, place ? 0 : wrong);
                sum += busbw;
                rows++;
            }
            printf("\n");
        }
        printf("# Out of bounds values : %d %s\n# Avg bus bandwidth    : %g \n#\n", wrong, wrong ? "FAILED" : "OK", sum / rows);
        printf("# Collective test concluded: %s_perf\n#\n", name);
        fflush(stdout);
    }
#ifdef MPI_SUPPORT
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
#endif
    return wrong ? 1 : 0;
}

/*
 * Sustainable memory bandwidth, measured as McCalpin's STREAM defines it: stream ELEMENTS NTIMES
 *
 * Written for Fleetmark from the published definition and run rules; it is not the official stream.c, and says so.
 *   Copy  c = a        2 words moved per element        Scale b = q c        2 words
 *   Add   c = a + b    3 words                          Triad a = b + q c    3 words
 * Words are doubles. Each kernel runs NTIMES times in turn; the first round warms up, the best of the others gives the
 * rate (1 MB = 1e6 bytes). Afterwards every element must hold what the same steps give one number.
 * The run rules want arrays of at least 4 times all last-level caches: ELEMENTS is the caller's business, as is the
 * placement of threads (OMP_NUM_THREADS, OMP_PROC_BIND, OMP_PLACES, numactl).
 *
 * Exit status: 0 validated, 1 no memory, 2 usage, 3 wrong results.
 */
#ifndef _OPENMP
#error "build with OpenMP: cc -O3 -march=native -fopenmp stream.c -o stream -lm"
#endif

#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__GNUC__) && !defined(__clang__)
/* Keep Copy a loop like the others: GCC would call memcpy, whose stores bypass the caches. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

enum { KERNELS = 4, ALIGNMENT = 2 << 20, FEWEST_TICKS = 20 };
enum { OK, NO_MEMORY, USAGE, WRONG };

typedef struct {
    double best, worst, sum;
} timing;

/* q^2 + 2q is just under 1, so values change in every round and yet neither overflow nor vanish. */
static const double Q = 0.4142;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The shortest step of the clock that a program can see, in seconds. */
static double clock_step(void)
{
    double shortest = 1.0;
    for (int i = 0; i < 200; i++) {
        double before = now(), after;
        do
            after = now();
        while (after <= before);
        if (after - before < shortest)
            shortest = after - before;
    }
    return shortest;
}

static double *array(size_t elements)
{
    void *memory = NULL;
    if (posix_memalign(&memory, ALIGNMENT, elements * sizeof(double)) != 0)
        return NULL;
    return memory;
}

/* Each thread touches first what it will work on, so that pages come from its own NUMA node. */
static void fill(double *restrict a, double *restrict b, double *restrict c, size_t n)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
        a[i] = 1.0;
        b[i] = 0.5;
        c[i] = 0.25;
    }
}

static void copy(double *restrict a, double *restrict b, double *restrict c, size_t n)
{
    (void)b;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        c[i] = a[i];
}

static void scale(double *restrict a, double *restrict b, double *restrict c, size_t n)
{
    (void)a;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        b[i] = Q * c[i];
}

static void add(double *restrict a, double *restrict b, double *restrict c, size_t n)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

static void triad(double *restrict a, double *restrict b, double *restrict c, size_t n)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + Q * c[i];
}

static const struct {
    const char *name;
    int words;
    void (*run)(double *restrict, double *restrict, double *restrict, size_t);
} kernel[KERNELS] = {{"Copy:", 2, copy}, {"Scale:", 2, scale}, {"Add:", 3, add}, {"Triad:", 3, triad}};

/* Elements of v that are further from `expected` than `allowed`, relatively. NaN counts as wrong. */
static size_t wrong(const double *v, size_t n, double expected, double allowed)
{
    size_t count = 0;
#pragma omp parallel for schedule(static) reduction(+ : count)
    for (size_t i = 0; i < n; i++)
        count += !(fabs(v[i] - expected) <= allowed * fabs(expected));
    return count;
}

static int validate(double *const v[3], size_t n, long rounds)
{
    double a = 1.0, b = 0.5, c = 0.25;
    for (long i = 0; i < rounds; i++) {
        c = a;
        b = Q * c;
        c = a + b;
        a = b + Q * c;
    }
    /* Rounding may differ by a few units in the last place a round (fused multiply-add). */
    double allowed = fmax(1e-13, 8.0 * DBL_EPSILON * (double)rounds);
    const double expected[3] = {a, b, c};
    int failed = 0;
    for (int i = 0; i < 3; i++) {
        size_t count = wrong(v[i], n, expected[i], allowed);
        if (count > 0) {
            printf("Failed Validation on array %c[]: %zu of %zu elements differ from %.17g by more than %.1e\n",
                   "abc"[i], count, n, expected[i], allowed);
            failed = 1;
        }
    }
    if (!failed)
        printf("Solution Validates: every element within %.1e of the expected value on all three arrays\n", allowed);
    return failed ? WRONG : OK;
}

static void rule(void)
{
    puts("-------------------------------------------------------------");
}

static void report(const timing *t, size_t n, long rounds, double step)
{
    double shortest = t[0].best;
    for (int k = 1; k < KERNELS; k++)
        if (t[k].best < shortest)
            shortest = t[k].best;
    printf("Clock step %.0f ns; the shortest kernel took %.0f of them.\n", step * 1e9, shortest / step);
    if (shortest < FEWEST_TICKS * step)
        printf("WARNING: fewer than %d clock ticks: use larger arrays.\n", FEWEST_TICKS);
    rule();
    puts("Function    Best Rate MB/s  Avg time     Min time     Max time");
    for (int k = 0; k < KERNELS; k++) {
        double megabytes = 1e-6 * (double)kernel[k].words * sizeof(double) * (double)n;
        printf("%-12s%11.1f  %11.6f  %11.6f  %11.6f\n", kernel[k].name, megabytes / t[k].best,
               t[k].sum / (double)(rounds - 1), t[k].best, t[k].worst);
    }
    rule();
}

/* A whole number in [least, most], or 0. */
static unsigned long long whole(const char *text, unsigned long long least, unsigned long long most)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || value < least || value > most)
        return 0;
    return value;
}

int main(int argc, char **argv)
{
    size_t n = argc == 3 ? (size_t)whole(argv[1], 1000, SIZE_MAX / sizeof(double)) : 0;
    long rounds = argc == 3 ? (long)whole(argv[2], 2, 1000000) : 0;
    if (n == 0 || rounds == 0) {
        fprintf(stderr, "usage: %s ELEMENTS NTIMES (ELEMENTS of each of three arrays of doubles, at least 1000; "
                        "NTIMES 2 to 1000000)\n", argv[0]);
        return USAGE;
    }
    double *v[3];
    for (int i = 0; i < 3; i++)
        if (!(v[i] = array(n))) {
            fprintf(stderr, "stream: no memory for three arrays of %.1f MiB: use fewer ELEMENTS\n",
                    (double)n * sizeof(double) / (1 << 20));
            return NO_MEMORY;
        }
    int threads = 0;
#pragma omp parallel reduction(+ : threads)
    threads += 1;

    rule();
    puts("Fleetmark kernels following STREAM's definition; not the official stream.c (version 1)");
    rule();
    printf("%zu bytes per array element\nArray size = %zu (elements)\n", sizeof(double), n);
    printf("Memory: 3 arrays of %.1f MiB\n", (double)n * sizeof(double) / (1 << 20));
    printf("Each kernel runs %ld times; the best time of all but the first counts.\n", rounds);
    printf("Number of Threads counted = %d\n", threads);
    fflush(stdout);

    fill(v[0], v[1], v[2], n);
    timing t[KERNELS];
    for (int k = 0; k < KERNELS; k++)
        t[k] = (timing){.best = DBL_MAX, .worst = 0.0, .sum = 0.0};
    for (long i = 0; i < rounds; i++)
        for (int k = 0; k < KERNELS; k++) {
            double begun = now();
            kernel[k].run(v[0], v[1], v[2], n);
            double took = now() - begun;
            if (i == 0)
                continue;
            t[k].best = fmin(t[k].best, took);
            t[k].worst = fmax(t[k].worst, took);
            t[k].sum += took;
        }
    report(t, n, rounds, clock_step());
    return validate(v, n, rounds);
}

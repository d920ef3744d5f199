/* Plays libnvidia-ml.so.1 of a host with two H100: constant readings, and an energy counter that grows by 300 W.
   The second device has no ECC, as NVML says of such. Values are those of an idle and of a throttled H100. */
#include <string.h>
#include <time.h>

static const char *words = "not supported by the stand-in";
static int devices[2] = {0, 1};
#define NOT_SUPPORTED 3
#define N(h) (*(int *)(h))

const char *nvmlErrorString(int code) { (void)code; return words; }
int nvmlInitWithFlags(unsigned f) { (void)f; return 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned n, void **h) { *h = &devices[n]; return 0; }
int nvmlDeviceGetName(void *h, char *out, unsigned size) { (void)h; strncpy(out, "NVIDIA H100 80GB HBM3", size); return 0; }
int nvmlDeviceGetPowerUsage(void *h, unsigned *mw) { *mw = N(h) ? 698765 : 71234; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *h, unsigned long long *mj) {
    struct timespec t;
    (void)h;
    clock_gettime(CLOCK_MONOTONIC, &t);
    *mj = (unsigned long long)(300.0 * (t.tv_sec * 1e3 + t.tv_nsec * 1e-6));
    return 0;
}
int nvmlDeviceGetClockInfo(void *h, int kind, unsigned *mhz) { *mhz = kind == 2 ? 2619 : N(h) ? 1410 : 1980; return 0; }
int nvmlDeviceGetTemperature(void *h, int sensor, unsigned *c) { (void)sensor; *c = N(h) ? 83 : 31; return 0; }
int nvmlDeviceGetUtilizationRates(void *h, unsigned *rates) { rates[0] = N(h) ? 100 : 0; rates[1] = N(h) ? 64 : 0; return 0; }
int nvmlDeviceGetMemoryInfo(void *h, unsigned long long *m) { m[0] = 85520809984ull; m[2] = N(h) ? 70000000000ull : 600000000ull; m[1] = m[0] - m[2]; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *h, unsigned long long *bits) { *bits = N(h) ? 0x44 : 0x1; return 0; }
int nvmlDeviceGetTotalEccErrors(void *h, int kind, int counter, unsigned long long *n) {
    (void)counter;
    *n = kind ? 0 : 5;
    return N(h) ? NOT_SUPPORTED : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/** job_cuda_test.c - processes of a job share the memory of a device; ended ones have none, however they ended. */
#include "cuda_test.h"
#include "nvml.h"

#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#define NVML(call) assert_int_equal(call, NVML_SUCCESS)

enum { MIB = 1 << 20, WHOLE = 64 };

static const char *self;

/* ---- other processes ---- */

struct process {
    pid_t pid;
    int to, from;
};

/* In a job of this name, with this argument; it has said how much is free by its first line. */
static struct process start(const char *job, const char *what, int *free_mib)
{
    int to[2], from[2];
    char line[32] = "";

    assert_true(!pipe2(to, O_CLOEXEC) && !pipe2(from, O_CLOEXEC));
    pid_t pid = fork();
    if (!pid) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        setenv("KOLO_COMM_ID", job, 1);
        execl("/proc/self/exe", self, what, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    for (size_t n = 0; n + 1 < sizeof line && read(from[0], line + n, 1) == 1 && line[n] != '\n';) n++;
    *free_mib = (int)strtol(line, NULL, 10);
    return (struct process){.pid = pid, .to = to[1], .from = from[0]};
}

/* 0: let it end by itself. */
static void finish(struct process p, int signal)
{
    int status;

    if (signal) kill(p.pid, signal);
    close(p.to);
    assert_int_equal(waitpid(p.pid, &status, 0), p.pid);
    close(p.from);
    if (signal)
        assert_true(WIFSIGNALED(status));
    else
        assert_int_equal(status, 0);
}

/* Take so many MiB of device 0, say how much is left, and wait. */
static int hold(const char *mib)
{
    size_t bytes = strtoul(mib, NULL, 10) * MIB, left = 0;
    void *p;
    char c;

    if (cudaMalloc(&p, bytes) || cudaMemGetInfo(&left, NULL)) return 1;
    printf("%zu\n", left / MIB);
    fflush(stdout);
    return read(0, &c, 1) ? 1 : 0;
}

/* Say how much NVML has left of device 0, and wait. */
static int look(void)
{
    nvmlDevice_t device;
    nvmlMemory_t memory;
    char c;

    if (nvmlInit_v2() || nvmlDeviceGetHandleByIndex_v2(0, &device) || nvmlDeviceGetMemoryInfo(device, &memory))
        return 1;
    if (memory.free + memory.used != memory.total) return 2;
    printf("%lld\n", (long long)memory.free / MIB);
    fflush(stdout);
    return read(0, &c, 1) ? 3 : 0;
}

static int free_here(void)
{
    size_t left, total;

    OK(cudaMemGetInfo(&left, &total));
    assert_int_equal(total / MIB, WHOLE);
    return (int)(left / MIB);
}

/* The file in shared memory that a process of a job has open. */
static void file_of(pid_t pid, char path[256])
{
    char pattern[64];
    glob_t found;

    *path = 0;
    snprintf(pattern, sizeof pattern, "/proc/%d/fd/*", (int)pid);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc && !strstr(path, "-cuda-"); i++) {
        ssize_t n = readlink(found.gl_pathv[i], path, 255);

        path[n > 0 ? n : 0] = 0;
    }
    globfree(&found);
    assert_non_null(strstr(path, "-cuda-"));
}

/* ---- tests ---- */

static void a_device_has_its_memory_once(void **state)
{
    void *p, *q;
    int seen;

    (void)state;
    assert_int_equal(free_here(), WHOLE);
    struct process other = start(getenv("KOLO_COMM_ID"), "40", &seen);
    assert_int_equal(seen, 24);
    assert_int_equal(free_here(), 24);
    FAILS(cudaErrorMemoryAllocation, cudaMalloc(&p, 32 * MIB));
    cudaGetLastError();
    OK(cudaMalloc(&p, 20 * MIB));
    assert_int_equal(free_here(), 4);
    OK(cudaSetDevice(1));
    assert_int_equal(free_here(), WHOLE);
    OK(cudaMalloc(&q, 60 * MIB));
    OK(cudaFree(q));
    OK(cudaSetDevice(0));
    finish(other, 0);
    assert_int_equal(free_here(), 44);
    OK(cudaFree(p));
    assert_int_equal(free_here(), WHOLE);
}

static void nvml_says_the_same(void **state)
{
    nvmlDevice_t device;
    nvmlMemory_t memory;
    static nvmlProcessInfo_t list[4096]; /* other jobs may have some */
    unsigned n = 4096;
    bool found = false;
    void *p;
    int seen;

    (void)state;
    NVML(nvmlInit_v2());
    NVML(nvmlDeviceGetHandleByIndex_v2(0, &device));
    OK(cudaMalloc(&p, 10 * MIB));
    struct process other = start(getenv("KOLO_COMM_ID"), "30", &seen);
    NVML(nvmlDeviceGetMemoryInfo(device, &memory));
    assert_int_equal(memory.used / MIB, 40);
    assert_int_equal(memory.free / MIB, free_here());
    NVML(nvmlDeviceGetComputeRunningProcesses_v3(device, &n, list));
    for (unsigned i = 0; i < n; i++) {
        if (list[i].pid == (unsigned)getpid()) assert_int_equal(list[i].usedGpuMemory / MIB, 10);
        if (list[i].pid != (unsigned)other.pid) continue;
        assert_int_equal(list[i].usedGpuMemory / MIB, 30); /* though it has not touched it */
        found = true;
    }
    assert_true(found);
    finish(other, 0);
    OK(cudaFree(p));
    NVML(nvmlShutdown());
}

/* A process that has less of each device than others, and device 0 only by NVML. */
static void limits_may_differ(void **state)
{
    static const struct {
        const char *limit;
        int left;
    } cases[] = {{"64M", 24}, {"40M", 0}, {"32M", 0}};
    void *p;
    int seen;

    (void)state;
    OK(cudaMalloc(&p, 40 * MIB));
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    FOR_EACH_CASE(c, cases)
    {
        setenv("KOLO_DEVICE_MEMORY", c->limit, 1);
        finish(start(getenv("KOLO_COMM_ID"), "look", &seen), 0);
        expect_case(c->limit, seen == c->left);
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
    setenv("KOLO_DEVICE_MEMORY", "64M", 1);
    OK(cudaFree(p));
}

static void who_is_killed_leaves_nothing(void **state)
{
    struct process other[3];
    int seen;

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) other[i] = start(getenv("KOLO_COMM_ID"), "20", &seen);
        assert_int_equal(seen, 4);
        finish(other[1], SIGKILL);
        assert_int_equal(free_here(), 24);
        other[1] = start(getenv("KOLO_COMM_ID"), "24", &seen);
        assert_int_equal(seen, 0);
        for (int i = 0; i < 3; i++) finish(other[i], i ? SIGKILL : SIGTERM);
        assert_int_equal(free_here(), WHOLE);
    }
}

static void jobs_know_nothing_of_each_other(void **state)
{
    char job[64], own[256], path[256];
    int seen;

    (void)state;
    snprintf(job, sizeof job, "another job of %d", (int)getpid());
    file_of(getpid(), own);
    struct process other = start(job, "50", &seen);
    assert_int_equal(free_here(), WHOLE);
    file_of(other.pid, path);
    assert_string_not_equal(own, path);
    finish(other, 0);
    assert_int_equal(access(path, F_OK), -1); /* the last one of its job */
    assert_int_equal(access(own, F_OK), 0);

    finish(start(job, "50", &seen), SIGKILL);
    snprintf(job, sizeof job, "a third job of %d", (int)getpid());
    finish(start(job, "1", &seen), 0);
    assert_int_equal(access(path, F_OK), -1); /* no process was left to remove it */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_has_its_memory_once),
        cmocka_unit_test(nvml_says_the_same),
        cmocka_unit_test(limits_may_differ),
        cmocka_unit_test(who_is_killed_leaves_nothing),
        cmocka_unit_test(jobs_know_nothing_of_each_other),
    };
    char job[64];

    self = argv[0];
    if (argc == 2) return strcmp(argv[1], "look") ? hold(argv[1]) : look();
    snprintf(job, sizeof job, "job of %d", (int)getpid());
    setenv("KOLO_COMM_ID", job, 1);
    setenv("KOLO_HOST_DEVICES", "4", 1);
    setenv("KOLO_DEVICE_MEMORY", "64M", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/** multicast_cuda_test.c - multicast objects: teams, bound memory, and the copies behind an address, also of other processes. */
#include "driver_test.h"

#include "compat/cuda/core/multicast.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t unit = 2 << 20;

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

/* ---- pieces ---- */

static CUmemGenericAllocationHandle team_of(unsigned devices, size_t bytes)
{
    const CUmulticastObjectProp properties = {.numDevices = devices, .size = bytes, .handleTypes = FD};
    CUmemGenericAllocationHandle object;

    CU(cuMulticastCreate(&object, &properties));
    return object;
}

static CUmemGenericAllocationHandle memory_of(int device, size_t bytes, unsigned handle_types)
{
    const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                            .requestedHandleTypes = (CUmemAllocationHandleType)handle_types,
                                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    CUmemGenericAllocationHandle memory;

    CU(cuMemCreate(&memory, bytes, &properties, 0));
    return memory;
}

static CUdeviceptr place(CUmemGenericAllocationHandle handle, size_t bytes, int device)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr p;

    CU(cuMemAddressReserve(&p, bytes, 0, 0, 0));
    CU(cuMemMap(p, bytes, 0, handle, 0));
    CU(cuMemSetAccess(p, bytes, &access, 1));
    return p;
}

static void displace(CUdeviceptr p, size_t bytes)
{
    CU(cuMemUnmap(p, bytes));
    CU(cuMemAddressFree(p, bytes));
}

static char *bytes_at(CUdeviceptr p)
{
    return (char *)(uintptr_t)p;
}

static struct kl_cuda_copies copies_at(CUdeviceptr p)
{
    struct kl_cuda_copies copies = {0};
    const char *why = kl_cuda_multicast_copies(bytes_at(p), 16, &copies);

    if (why) fail_msg("no copies: %s", why);
    return copies;
}

/* The byte of one device behind a multicast address. */
static char *copy_of(CUdeviceptr p, unsigned member)
{
    const struct kl_cuda_copies copies = copies_at(p);

    assert_true(member < copies.count);
    return copies.first + member * copies.stride;
}

static void expect_none(CUdeviceptr p, size_t bytes, const char *part)
{
    struct kl_cuda_copies copies;
    const char *why = kl_cuda_multicast_copies(bytes_at(p), bytes, &copies);

    if (!why || !strstr(why, part)) fail_msg("\"%s\", not \"%s\"", why ? why : "copies", part);
}

/* An access there is a fault, which has a reason. */
static void expect_fault(const char *address, const char *part)
{
    const char *why = kl_cuda_multicast_explain(address);
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], address, 1), -1);
    assert_int_equal(errno, EFAULT);
    close(ends[0]);
    close(ends[1]);
    if (!why || !strstr(why, part)) fail_msg("\"%s\", not \"%s\"", why ? why : "nothing", part);
}

static size_t free_bytes(int device)
{
    size_t free, total;

    OK(cudaSetDevice(device));
    CU(cuMemGetInfo(&free, &total));
    return free;
}

/* ---- one process ---- */

static void objects_have_sizes_and_teams(void **state)
{
    CUmulticastObjectProp p = {.numDevices = 2, .size = unit, .handleTypes = FD};
    CUmemGenericAllocationHandle object;
    size_t granularity;
    int works;

    (void)state;
    CU(cuDeviceGetAttribute(&works, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 3));
    assert_int_equal(works, 1);
    CU(cuMulticastGetGranularity(&granularity, &p, CU_MULTICAST_GRANULARITY_MINIMUM));
    assert_int_equal(granularity, unit);
    CU(cuMulticastGetGranularity(&granularity, &p, CU_MULTICAST_GRANULARITY_RECOMMENDED));
    assert_int_equal(granularity, unit);
    assert_int_equal(cuMulticastGetGranularity(&granularity, &p, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastGetGranularity(NULL, &p, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastCreate(&object, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastCreate(NULL, &p), CUDA_ERROR_INVALID_VALUE);
    p.size = unit + 4096;
    assert_int_equal(cuMulticastCreate(&object, &p), CUDA_ERROR_INVALID_VALUE);
    p.size = 0;
    assert_int_equal(cuMulticastCreate(&object, &p), CUDA_ERROR_INVALID_VALUE);
    p.size = unit;
    p.flags = 1;
    assert_int_equal(cuMulticastCreate(&object, &p), CUDA_ERROR_INVALID_VALUE);
    p.flags = 0;
    p.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
    assert_int_equal(cuMulticastCreate(&object, &p), CUDA_ERROR_NOT_SUPPORTED);
    p.handleTypes = FD;
    p.numDevices = 5; /* of 4 */
    assert_int_equal(cuMulticastCreate(&object, &p), CUDA_ERROR_INVALID_VALUE);
    p.numDevices = 0;
    assert_int_equal(cuMulticastCreate(&object, &p), CUDA_ERROR_INVALID_VALUE);
    object = team_of(2, unit);
    assert_int_equal(cuMulticastAddDevice(object, 99), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(cuMulticastAddDevice(object + 1, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMulticastAddDevice(object, 2));
    assert_int_equal(cuMulticastAddDevice(object, 2), CUDA_ERROR_INVALID_VALUE); /* a device at most once */
    CU(cuMulticastAddDevice(object, 0));
    assert_int_equal(cuMulticastAddDevice(object, 1), CUDA_ERROR_INVALID_VALUE); /* the team is complete */
    CU(cuMemRelease(object));
    assert_int_equal(cuMulticastAddDevice(object, 1), CUDA_ERROR_INVALID_VALUE);
}

/* Memory and object, with some of its sides wrong. */
static void bindings_are_checked(void **state)
{
    CUmemGenericAllocationHandle object = team_of(2, 4 * unit), memory, other, own, host;
    CUmemAllocationProp of_host = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = FD, .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};

    (void)state;
    OK(cudaSetDevice(0));
    CU(cuMulticastAddDevice(object, 0));
    CU(cuMulticastAddDevice(object, 1));
    memory = memory_of(0, 2 * unit, FD);
    other = memory_of(3, unit, FD);
    own = memory_of(1, unit, 0);
    CU(cuMemCreate(&host, unit, &of_host, 0));
    assert_int_equal(cuMulticastBindMem(object, 4096, memory, 0, unit, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastBindMem(object, 0, memory, 4096, unit, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastBindMem(object, 0, memory, 0, unit + 4096, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastBindMem(object, 0, memory, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastBindMem(object, 0, memory, 0, 4 * unit, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastBindMem(object, 0, memory, unit, 2 * unit, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastBindMem(object, 3 * unit, memory, 0, 2 * unit, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastBindMem(object, 0, memory, 0, unit, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastBindMem(object, 0, object, 0, unit, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastBindMem(memory, 0, memory, 0, unit, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastBindMem(object, 0, other, 0, unit, 0), CUDA_ERROR_INVALID_DEVICE); /* not in the team */
    assert_int_equal(cuMulticastBindMem(object, 0, host, 0, unit, 0), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(cuMulticastBindMem(object, 0, own, 0, unit, 0), CUDA_ERROR_INVALID_VALUE); /* not shareable */
    CU(cuMulticastBindMem(object, unit, memory, 0, 2 * unit, 0));
    assert_int_equal(cuMulticastBindMem(object, 2 * unit, memory, 0, unit, 0), CUDA_ERROR_INVALID_VALUE); /* taken */
    CU(cuMulticastBindMem(object, 0, memory, unit, unit, 0)); /* the same memory, elsewhere */
    assert_int_equal(cuMulticastUnbind(object, 0, unit, unit), CUDA_ERROR_INVALID_VALUE); /* half of a binding */
    assert_int_equal(cuMulticastUnbind(object, 0, 3 * unit, unit), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastUnbind(object, 1, unit, 2 * unit), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastUnbind(object, 0, unit, 4 * unit), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMulticastUnbind(object, 99, unit, 2 * unit), CUDA_ERROR_INVALID_DEVICE);
    CU(cuMulticastUnbind(object, 0, 0, 4 * unit)); /* both */
    assert_int_equal(cuMulticastUnbind(object, 0, unit, 2 * unit), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemRelease(memory));
    CU(cuMemRelease(other));
    CU(cuMemRelease(own));
    CU(cuMemRelease(host));
    CU(cuMemRelease(object));
}

static void an_address_has_the_copies_of_all_devices(void **state)
{
    CUmemGenericAllocationHandle object = team_of(2, 2 * unit), memory[2];
    const size_t before = free_bytes(1);
    CUdeviceptr p, own[2];

    (void)state;
    CU(cuMulticastAddDevice(object, 3)); /* in the order of devices all the same */
    CU(cuMulticastAddDevice(object, 1));
    memory[0] = memory_of(1, 2 * unit, FD);
    memory[1] = memory_of(3, unit, FD);
    own[0] = place(memory[0], 2 * unit, 1);
    own[1] = place(memory[1], unit, 3);
    p = place(object, 2 * unit, 1);
    CU(cuMulticastBindMem(object, 0, memory[0], 0, 2 * unit, 0)); /* after the object was mapped */
    CU(cuMulticastBindAddr(object, unit, own[1], unit, 0));
    assert_int_equal(copies_at(p).count, 2);
    bytes_at(own[0])[unit + 32] = 5;
    bytes_at(own[1])[32] = 6;
    assert_int_equal(*copy_of(p + unit + 32, 0), 5);
    assert_int_equal(*copy_of(p + unit + 32, 1), 6);
    *copy_of(p + unit + 48, 1) = 7;
    assert_int_equal(bytes_at(own[1])[48], 7);
    expect_fault(copy_of(p + 16, 1), "where no memory of device 3 is bound");
    expect_fault(bytes_at(p), "which only multimem instructions may access");
    assert_null(kl_cuda_multicast_explain(bytes_at(own[0])));
    expect_none(p + 2 * unit - 16, 32, "beyond the end");
    expect_none(own[0], 16, "without a multicast object");
    FAILS(cudaErrorInvalidValue, cudaMemset(bytes_at(p), 0, 16));
    FAILS(cudaErrorInvalidValue, cudaMemcpy(bytes_at(p), bytes_at(own[0]), 16, cudaMemcpyDeviceToDevice));
    FAILS(cudaErrorInvalidValue, cudaMemcpy(bytes_at(own[0]), bytes_at(p), 16, cudaMemcpyDeviceToDevice));
    (void)cudaGetLastError();
    assert_int_equal(cuStreamWriteValue32(NULL, p, 1, 0), CUDA_ERROR_INVALID_VALUE);

    CU(cuMulticastUnbind(object, 3, unit, unit));
    expect_fault(copy_of(p + unit, 1), "where no memory of device 3 is bound");
    assert_int_equal(bytes_at(own[1])[48], 7); /* the memory is still there */
    displace(own[0], 2 * unit);
    CU(cuMemRelease(memory[0]));
    assert_int_equal(before - free_bytes(1), 2 * unit); /* the object keeps it */
    assert_int_equal(*copy_of(p + unit + 32, 0), 5);
    displace(p, 2 * unit);
    expect_none(p, 16, "without a multicast object");
    CU(cuMemRelease(object));
    assert_int_equal(free_bytes(1), before);
    displace(own[1], unit);
    CU(cuMemRelease(memory[1]));
}

static void access_has_to_be_given(void **state)
{
    CUmemGenericAllocationHandle object = team_of(1, unit), memory = memory_of(0, unit, FD), same;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAllocationProp properties;
    unsigned long long flags;
    CUdeviceptr p;

    (void)state;
    CU(cuMulticastAddDevice(object, 0));
    CU(cuMulticastBindMem(object, 0, memory, 0, unit, 0));
    CU(cuMemAddressReserve(&p, 2 * unit, 0, 0, 0));
    assert_int_equal(cuMemMap(p, 2 * unit, 0, object, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemMap(p + unit, unit, 0, object, 0));
    assert_int_equal(cuMemMap(p + unit, unit, 0, object, 0), CUDA_ERROR_INVALID_VALUE);
    expect_none(p + unit, 16, "no device has access");
    CU(cuMemSetAccess(p + unit, unit, &access, 1));
    assert_int_equal(copies_at(p + unit).count, 1);
    CU(cuMemGetAccess(&flags, &access.location, p + unit));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CU(cuMemSetAccess(p + unit, unit, &access, 1));
    expect_none(p + unit, 16, "no device has access");
    assert_int_equal(cuMemGetAllocationPropertiesFromHandle(&properties, object), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemRetainAllocationHandle(&same, bytes_at(p + unit)));
    assert_int_equal(same, object);
    CU(cuMemRelease(same));
    CU(cuMemRelease(object)); /* the mapping keeps it */
    CU(cuMemUnmap(p + unit, unit));
    CU(cuMemAddressFree(p, 2 * unit));
    CU(cuMemRelease(memory));
}

/* Both openings see the bindings of either, and either can unbind it. */
static void a_process_can_open_its_object_twice(void **state)
{
    CUmemGenericAllocationHandle object = team_of(1, unit), memory = memory_of(2, unit, FD), again;
    const size_t before = free_bytes(2);
    CUdeviceptr p;
    int fd;

    (void)state;
    CU(cuMulticastAddDevice(object, 2));
    CU(cuMulticastBindMem(object, 0, memory, 0, unit, 0));
    CU(cuMemRelease(memory));
    CU(cuMemExportToShareableHandle(&fd, object, FD, 0));
    CU(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, FD));
    close(fd);
    p = place(again, unit, 2);
    *copy_of(p, 0) = 3;
    CU(cuMulticastUnbind(again, 2, 0, unit));
    assert_int_equal(free_bytes(2), before + unit);
    expect_fault(copy_of(p, 0), "where no memory of device 2 is bound");
    displace(p, unit);
    CU(cuMemRelease(again));
    CU(cuMemRelease(object));
}

/* ---- teams that are not complete ---- */

struct last_device {
    CUmemGenericAllocationHandle object;
    int waiting; /* the thread that binds */
    pid_t victim;
};

static void *add_when_it_sleeps(void *arg)
{
    const struct last_device *l = arg;

    while (!sleeps(l->waiting)) continue;
    if (l->victim) {
        kill(l->victim, SIGKILL);
        waitpid(l->victim, NULL, 0);
    } else {
        CU(cuMulticastAddDevice(l->object, 1));
    }
    return NULL;
}

static void binding_waits_for_the_team(void **state)
{
    CUmemGenericAllocationHandle object = team_of(2, unit), memory = memory_of(0, unit, FD);
    struct last_device l = {object, (int)syscall(SYS_gettid), 0};
    pthread_t thread;

    (void)state;
    CU(cuMulticastAddDevice(object, 0));
    assert_int_equal(pthread_create(&thread, NULL, add_when_it_sleeps, &l), 0);
    CU(cuMulticastBindMem(object, 0, memory, 0, unit, 0));
    pthread_join(thread, NULL);
    CU(cuMemRelease(object));
    CU(cuMemRelease(memory));
}

/* ---- processes ---- */

struct child {
    pid_t pid;
    int from, to;
};

/* This program with arguments: a word, a descriptor that it inherits, and pipes. */
static struct child start(const char *word, int fd)
{
    int there[2], back[2];
    char numbers[3][16];
    struct child c;

    assert_int_equal(pipe2(there, O_CLOEXEC), 0);
    assert_int_equal(pipe2(back, O_CLOEXEC), 0);
    c.pid = fork();
    if (!c.pid) {
        const int inherited[3] = {fd, there[0], back[1]};

        for (int i = 0; i < 3; i++) {
            if (inherited[i] >= 0) fcntl(inherited[i], F_SETFD, 0);
            snprintf(numbers[i], sizeof numbers[i], "%d", inherited[i]);
        }
        execl("/proc/self/exe", "multicast_cuda_test", word, numbers[0], numbers[1], numbers[2], (char *)NULL);
        _exit(99);
    }
    close(there[0]);
    close(back[1]);
    c.from = back[0];
    c.to = there[1];
    return c;
}

static void hear(int fd)
{
    char word;

    assert_int_equal(read(fd, &word, 1), 1);
}

static void tell(int fd)
{
    assert_int_equal(write(fd, "", 1), 1);
}

static int end(const struct child *c)
{
    int status;

    close(c->to);
    close(c->from);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    return status;
}

static int exported(CUmemGenericAllocationHandle object)
{
    int fd;

    CU(cuMemExportToShareableHandle(&fd, object, FD, 0));
    return fd;
}

static CUmemGenericAllocationHandle import(int fd)
{
    CUmemGenericAllocationHandle object;

    CU(cuMemImportFromShareableHandle(&object, (void *)(intptr_t)fd, FD));
    return object;
}

/* The second process: its device, its memory, and a look at the first one's. */
static int be_member(int fd, int from, int to)
{
    CU(cuInit(0));
    OK(cudaSetDevice(1));
    CUmemGenericAllocationHandle object = import(fd), memory = memory_of(1, unit, FD);
    CUdeviceptr own = place(memory, unit, 1);

    CU(cuMulticastAddDevice(object, 1));
    CU(cuMulticastBindMem(object, 0, memory, 0, unit, 0));
    CUdeviceptr p = place(object, unit, 1);
    bytes_at(own)[5] = 55;
    tell(to);
    hear(from);
    if (*copy_of(p, 0) != 42 || bytes_at(own)[6] != 66) return 1;
    *copy_of(p + 16, 0) = 77;
    tell(to);
    hear(from); /* an end of the pipe, if the other one has done all */
    return 0;
}

static void processes_share_an_object(void **state)
{
    CUmemGenericAllocationHandle object = team_of(2, unit), memory = memory_of(0, unit, FD);
    CUdeviceptr own = place(memory, unit, 0), p;
    const int fd = exported(object);
    struct child c = start("member", fd);

    (void)state;
    close(fd);
    CU(cuMulticastAddDevice(object, 0));
    CU(cuMulticastBindMem(object, 0, memory, 0, unit, 0)); /* may wait for the other process */
    p = place(object, unit, 0);
    hear(c.from);
    bytes_at(own)[0] = 42;
    assert_int_equal(copy_of(p, 1)[5], 55);
    copy_of(p, 1)[6] = 66;
    tell(c.to);
    hear(c.from);
    assert_int_equal(bytes_at(own)[16], 77);
    tell(c.to);
    assert_int_equal(end(&c), 0);
    displace(p, unit);
    displace(own, unit);
    CU(cuMemRelease(memory));
    CU(cuMemRelease(object));
}

/* Mapped memory stays; the rest is gone, and another process may take the place. */
static void a_killed_process_leaves_its_place(void **state)
{
    CUmemGenericAllocationHandle object = team_of(2, unit), memory = memory_of(1, unit, FD);
    const int fd = exported(object);
    struct child c = start("member", fd);
    char words[64];
    CUdeviceptr p;

    (void)state;
    close(fd);
    CU(cuMulticastAddDevice(object, 0));
    hear(c.from);
    assert_int_equal(cuMulticastBindMem(object, 0, memory, 0, unit, 0), CUDA_ERROR_INVALID_VALUE); /* it is taken */
    kill(c.pid, SIGKILL);
    assert_int_equal(end(&c), SIGKILL);
    p = place(object, unit, 0);
    snprintf(words, sizeof words, "of device 1 is gone, as process %d has ended", (int)c.pid);
    expect_fault(copy_of(p, 1), words);
    CU(cuMulticastBindMem(object, 0, memory, 0, unit, 0));
    *copy_of(p, 1) = 1;
    displace(p, unit);
    CU(cuMemRelease(object));
    CU(cuMemRelease(memory));
}

static int be_idle(int fd, int from, int to)
{
    CU(cuInit(0));
    OK(cudaSetDevice(1));
    (void)import(fd);
    tell(to);
    hear(from);
    return 0;
}

static void a_killed_process_ends_the_wait_for_its_device(void **state)
{
    CUmemGenericAllocationHandle object = team_of(2, unit), memory = memory_of(0, unit, FD);
    const int fd = exported(object);
    struct child c = start("idle", fd);
    struct last_device l = {object, (int)syscall(SYS_gettid), c.pid};
    pthread_t thread;
    CUdeviceptr p;

    (void)state;
    close(fd);
    hear(c.from);
    CU(cuMulticastAddDevice(object, 0));
    assert_int_equal(pthread_create(&thread, NULL, add_when_it_sleeps, &l), 0);
    assert_int_equal(cuMulticastBindMem(object, 0, memory, 0, unit, 0), CUDA_ERROR_ILLEGAL_STATE);
    pthread_join(thread, NULL);
    CU(cuMemAddressReserve(&p, unit, 0, 0, 0));
    assert_int_equal(cuMemMap(p, unit, 0, object, 0), CUDA_ERROR_ILLEGAL_STATE);
    CU(cuMemAddressFree(p, unit));
    close(c.to);
    close(c.from);
    CU(cuMemRelease(object));
    CU(cuMemRelease(memory));
}

/* ---- machines ---- */

static int be_unready(void)
{
    CU(cuInit(0));
    OK(cudaSetDevice(0));
    CUmemGenericAllocationHandle object = team_of(1, unit), memory = memory_of(0, unit, FD);

    CU(cuMulticastAddDevice(object, 0));
    assert_int_equal(cuMulticastBindMem(object, 0, memory, 0, unit, 0), CUDA_ERROR_SYSTEM_NOT_READY);
    return 0;
}

/* Exit status: the attribute. */
static int ask(void)
{
    const CUmulticastObjectProp properties = {.numDevices = 1, .size = unit};
    CUmemGenericAllocationHandle object;
    int works;

    CU(cuInit(0));
    CU(cuDeviceGetAttribute(&works, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
    assert_int_equal(cuMulticastCreate(&object, &properties), works ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
    return works;
}

static int answer_of(const char *word, const char *setting, const char *topology)
{
    if (setting)
        setenv("KOLO_CUDA_MULTICAST", setting, 1);
    else
        unsetenv("KOLO_CUDA_MULTICAST");
    if (topology) {
        setenv("NCCL_TOPO_FILE", topology, 1);
        unsetenv("KOLO_HOST_DEVICES");
    }
    struct child c = start(word, -1);
    unsetenv("NCCL_TOPO_FILE");
    setenv("KOLO_HOST_DEVICES", "4", 1);
    return WEXITSTATUS(end(&c));
}

static void machines_with_switches_have_multicast(void **state)
{
#define MACHINE "tests/data/topologies/synthetic/"
    (void)state;
    assert_int_equal(answer_of("ask", NULL, MACHINE "h100-nvsw-8nic-400g.xml"), 1);
    assert_int_equal(answer_of("ask", NULL, MACHINE "a100-nvsw-8nic-200g.xml"), 0); /* sm_80 */
    assert_int_equal(answer_of("ask", NULL, MACHINE "gh200-1gpu-1nic.xml"), 0);     /* no NVSwitch */
    assert_int_equal(answer_of("ask", NULL, NULL), 0);
    assert_int_equal(answer_of("ask", "1", NULL), 1);
    assert_int_equal(answer_of("ask", "0", MACHINE "h100-nvsw-8nic-400g.xml"), 0);
    assert_int_equal(answer_of("unready", "unready", NULL), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_have_sizes_and_teams),
        cmocka_unit_test(bindings_are_checked),
        cmocka_unit_test(an_address_has_the_copies_of_all_devices),
        cmocka_unit_test(access_has_to_be_given),
        cmocka_unit_test(a_process_can_open_its_object_twice),
        cmocka_unit_test(binding_waits_for_the_team),
        cmocka_unit_test(processes_share_an_object),
        cmocka_unit_test(a_killed_process_leaves_its_place),
        cmocka_unit_test(a_killed_process_ends_the_wait_for_its_device),
        cmocka_unit_test(machines_with_switches_have_multicast),
    };

    if (argc == 5 && !strcmp(argv[1], "ask")) return ask();
    if (argc == 5 && !strcmp(argv[1], "unready")) return be_unready();
    if (argc == 5 && !strcmp(argv[1], "idle")) return be_idle(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    if (argc == 5 && !strcmp(argv[1], "member")) return be_member(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
    setenv("KOLO_HOST_DEVICES", "4", 1);
    setenv("KOLO_DEVICE_MEMORY", "64M", 1);
    setenv("KOLO_CUDA_MULTICAST", "1", 1);
    if (cuInit(0)) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

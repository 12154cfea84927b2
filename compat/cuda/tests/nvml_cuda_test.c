/* SPDX-License-Identifier: Apache-2.0 */
/** nvml_cuda_test.c - NVML: counting, handles, versioned structures, and links as the topology has them. */
#include "cuda_test.h"
#include "nvml.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define NVML(call) assert_int_equal(call, NVML_SUCCESS)

enum { GPUS = 3, LINKS = 12 };

static const char topology[] =
    "<system version=\"1\">\n"
    "  <cpu numaid=\"0\" affinity=\"ff\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"106\">\n"
    "    <pci busid=\"0000:16:00.0\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">\n"
    "      <pci busid=\"0000:17:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b5\" "
    "subsystem_vendor=\"0x10de\" "
    "subsystem_device=\"0x1533\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">\n"
    "        <gpu dev=\"0\" sm=\"80\" rank=\"0\" gdr=\"1\"><nvlink target=\"0000:65:00.0\" count=\"12\" "
    "tclass=\"0x030200\"/></gpu>\n"
    "      </pci>\n"
    "      <pci busid=\"0000:65:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x20b5\" link_speed=\"16.0 GT/s "
    "PCIe\" "
    "link_width=\"16\">\n"
    "        <gpu dev=\"1\" sm=\"80\" rank=\"1\" gdr=\"1\"><nvlink target=\"0000:17:00.0\" count=\"12\" "
    "tclass=\"0x030200\"/></gpu>\n"
    "      </pci>\n"
    "    </pci>\n"
    "  </cpu>\n"
    "  <cpu numaid=\"1\" affinity=\"ff00\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"106\">\n"
    "    <pci busid=\"0000:ca:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x1eb8\" link_speed=\"8.0 GT/s "
    "PCIe\" "
    "link_width=\"8\">\n"
    "      <gpu dev=\"2\" sm=\"75\" rank=\"2\" gdr=\"0\"><c2c bw=\"44712\" count=\"5\"/></gpu>\n"
    "    </pci>\n"
    "  </cpu>\n"
    "</system>\n";

static nvmlDevice_t device_at(unsigned index)
{
    nvmlDevice_t device;

    NVML(nvmlDeviceGetHandleByIndex_v2(index, &device));
    return device;
}

static void it_counts_its_beginnings(void **state)
{
    unsigned count;

    (void)state;
    assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
    assert_int_equal(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
    NVML(nvmlInit_v2());
    NVML(nvmlInitWithFlags(0));
    NVML(nvmlShutdown());
    NVML(nvmlDeviceGetCount_v2(&count));
    assert_int_equal(count, GPUS);
    NVML(nvmlShutdown());
    assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
    NVML(nvmlInit());
}

static void handles_are_found_by_everything(void **state)
{
    nvmlDevice_t same;
    char uuid[96], name[96], small[10];
    unsigned index;

    (void)state;
    for (unsigned i = 0; i < GPUS; i++) {
        nvmlPciInfo_t pci;
        nvmlDevice_t d = device_at(i);

        NVML(nvmlDeviceGetIndex(d, &index));
        assert_int_equal(index, i);
        NVML(nvmlDeviceGetUUID(d, uuid, sizeof uuid));
        NVML(nvmlDeviceGetHandleByUUID(uuid, &same));
        assert_ptr_equal(same, d);
        NVML(nvmlDeviceGetPciInfo_v3(d, &pci));
        NVML(nvmlDeviceGetHandleByPciBusId_v2(pci.busId, &same));
        assert_ptr_equal(same, d);
        NVML(nvmlDeviceGetHandleByPciBusId_v2(pci.busIdLegacy, &same));
        assert_ptr_equal(same, d);
    }
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(GPUS, &same), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetHandleByUUID("GPU-1", &same), NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2("0001:01:00.0", &same), NVML_ERROR_NOT_FOUND);
    assert_int_equal(nvmlDeviceGetName((nvmlDevice_t)&index, name, 96), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetName(device_at(0), small, sizeof small), NVML_ERROR_INSUFFICIENT_SIZE);
    NVML(nvmlDeviceGetName(device_at(0), name, 96));
    assert_string_equal(name, "NVIDIA A100 80GB PCIe");
    NVML(nvmlDeviceGetName(device_at(2), name, 96));
    assert_string_equal(name, "Tesla T4");
}

static void structures_have_versions(void **state)
{
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    nvmlPciInfoExt_t pci = {.version = nvmlPciInfoExt_v1};
    nvmlGpuFabricInfoV_t fabric = {.version = nvmlGpuFabricInfo_v3};
    nvmlPciInfo_t short_form;

    (void)state;
    assert_int_equal(nvmlMemory_v2, 0x02000028);
    assert_int_equal(nvmlPciInfoExt_v1, 0x01000040);
    assert_int_equal(nvmlGpuFabricInfo_v2, 0x02000024);
    assert_int_equal(nvmlGpuFabricInfo_v3, 0x03000028);
    assert_int_equal(nvmlSystemConfComputeSettings_v1, 0x01000014);
    assert_int_equal(sizeof short_form, 68);
    NVML(nvmlDeviceGetMemoryInfo_v2(device_at(0), &memory));
    assert_int_equal(memory.total, memory.free + memory.used);
    memory.version = 0x01000028;
    assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device_at(0), &memory), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    NVML(nvmlDeviceGetPciInfoExt(device_at(0), &pci));
    assert_string_equal(pci.busId, "00000000:17:00.0");
    assert_int_equal(pci.pciDeviceId, 0x20b510de);
    NVML(nvmlDeviceGetGpuFabricInfoV(device_at(0), &fabric));
    fabric.version = 7;
    assert_int_equal(nvmlDeviceGetGpuFabricInfoV(device_at(0), &fabric), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

static void links_are_those_of_the_topology(void **state)
{
    nvmlEnableState_t up;
    nvmlPciInfo_t pci;
    nvmlIntNvLinkDeviceType_t type;
    unsigned can;

    (void)state;
    for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; link++) {
        NVML(nvmlDeviceGetNvLinkState(device_at(1), link, &up));
        assert_int_equal(up, link < LINKS);
    }
    assert_int_equal(nvmlDeviceGetNvLinkState(device_at(1), NVML_NVLINK_MAX_LINKS, &up), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetNvLinkState(device_at(2), 0, &up), NVML_ERROR_NOT_SUPPORTED);
    NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2(device_at(0), 3, &pci));
    assert_string_equal(pci.busId, "00000000:65:00.0");
    NVML(nvmlDeviceGetNvLinkRemoteDeviceType(device_at(0), 3, &type));
    assert_int_equal(type, NVML_NVLINK_DEVICE_TYPE_GPU);
    NVML(nvmlDeviceGetNvLinkCapability(device_at(0), 3, NVML_NVLINK_CAP_P2P_SUPPORTED, &can));
    assert_int_equal(can, 1);
}

static void paths_are_those_of_the_topology(void **state)
{
    nvmlGpuTopologyLevel_t level;
    nvmlGpuP2PStatus_t status;
    nvmlFieldValue_t field[2] = {{.fieldId = NVML_FI_DEV_NVLINK_LINK_COUNT}, {.fieldId = 1}};
    unsigned width, generation;
    int can;

    (void)state;
    NVML(nvmlDeviceGetTopologyCommonAncestor(device_at(0), device_at(0), &level));
    assert_int_equal(level, NVML_TOPOLOGY_INTERNAL);
    NVML(nvmlDeviceGetTopologyCommonAncestor(device_at(0), device_at(1), &level));
    assert_int_equal(level, NVML_TOPOLOGY_SINGLE);
    NVML(nvmlDeviceGetTopologyCommonAncestor(device_at(0), device_at(2), &level));
    assert_int_equal(level, NVML_TOPOLOGY_SYSTEM);
    NVML(nvmlDeviceGetP2PStatus(device_at(0), device_at(1), NVML_P2P_CAPS_INDEX_NVLINK, &status));
    assert_int_equal(status, NVML_P2P_STATUS_OK);
    NVML(nvmlDeviceGetP2PStatus(device_at(0), device_at(2), NVML_P2P_CAPS_INDEX_NVLINK, &status));
    assert_int_equal(status, NVML_P2P_STATUS_NOT_SUPPORTED);
    NVML(nvmlDeviceGetCurrPcieLinkWidth(device_at(2), &width));
    NVML(nvmlDeviceGetMaxPcieLinkGeneration(device_at(2), &generation));
    assert_int_equal(width, 8);
    assert_int_equal(generation, 3);
    NVML(nvmlDeviceGetFieldValues(device_at(0), 2, field));
    assert_int_equal(field[0].value.uiVal, LINKS);
    assert_int_equal(field[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    field[1].fieldId = NVML_FI_DEV_C2C_LINK_COUNT;
    NVML(nvmlDeviceGetFieldValues(device_at(2), 2, field));
    assert_int_equal(field[0].value.uiVal, 0);
    assert_int_equal(field[1].value.uiVal, 5);
    OK(cudaDeviceCanAccessPeer(&can, 0, 1)); /* visible 0 is the host's 2 */
    assert_int_equal(can, 0);
}

/* CUDA_VISIBLE_DEVICES=2,0: two devices in another order. NVML ignores it. */
static void cuda_sees_what_is_visible(void **state)
{
    struct cudaDeviceProp p;
    char uuid[96], text[41] = "GPU-";
    int count, device;

    (void)state;
    OK(cudaGetDeviceCount(&count));
    assert_int_equal(count, 2);
    OK(cudaGetDeviceProperties(&p, 0));
    assert_string_equal(p.name, "Tesla T4");
    assert_int_equal(p.major * 10 + p.minor, 75);
    assert_int_equal(p.pciBusID, 0xca);
    OK(cudaDeviceGetByPCIBusId(&device, "0000:17:00.0"));
    assert_int_equal(device, 1);
    OK(cudaDeviceGetByPCIBusId(&device, "CA:00"));
    assert_int_equal(device, 0);
    FAILS(cudaErrorInvalidDevice, cudaDeviceGetByPCIBusId(&device, "0000:17:00.1"));
    FAILS(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(&device, "0000:17:00.0 "));
    FAILS(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(&device, "0000:17:00."));
    FAILS(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(&device, "17"));
    FAILS(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(&device, "0:0:17:00"));
    OK(cudaGetDeviceProperties(&p, 1));
    char *at = text + 4;
    for (int i = 0; i < 16; i++)
        at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char)p.uuid.bytes[i]);
    NVML(nvmlDeviceGetUUID(device_at(0), uuid, sizeof uuid));
    assert_string_equal(text, uuid);
}

static void what_is_unknown_is_not_supported(void **state)
{
    nvmlEventSet_t set;
    nvmlEventData_t data;
    unsigned now, pending;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);

    (void)state;
    assert_non_null(library);
    nvmlReturn_t (*power)(nvmlDevice_t, unsigned *) = NULL;
    *(void **)&power = dlsym(library, "nvmlDeviceGetPowerUsage");
    assert_int_equal(power(device_at(0), &now), NVML_ERROR_NOT_SUPPORTED);
    NVML(nvmlDeviceGetMigMode(device_at(0), &now, &pending));
    assert_int_equal(now, 0);
    NVML(nvmlEventSetCreate(&set));
    assert_int_equal(nvmlEventSetWait_v2(set, &data, 1), NVML_ERROR_TIMEOUT);
    NVML(nvmlEventSetFree(set));
    assert_int_equal(nvmlEventSetFree(set), NVML_ERROR_INVALID_ARGUMENT);
    assert_int_equal(nvmlEventSetWait_v2(set, &data, 1), NVML_ERROR_INVALID_ARGUMENT);
    assert_string_equal(nvmlErrorString(NVML_ERROR_NOT_SUPPORTED), "Not Supported");
    dlclose(library);
}

/* Uses device 0 until its input ends. */
static int use_a_device(void)
{
    char *p, end;

    if (cudaMalloc((void **)&p, 1 << 20) || cudaMemset(p, 1, 1 << 20) || cudaDeviceSynchronize()) return 1;
    if (write(STDOUT_FILENO, "", 1) != 1) return 2;
    return read(STDIN_FILENO, &end, 1) == 0 ? 0 : 3;
}

static bool lists(nvmlDevice_t device, pid_t pid, unsigned long long *bytes)
{
    static nvmlProcessInfo_t list[4096]; /* other jobs may have some */
    unsigned count = 4096;

    NVML(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list));
    for (unsigned i = 0; i < count; i++)
        if (list[i].pid == (unsigned)pid) *bytes = list[i].usedGpuMemory;
    for (unsigned i = 0; i < count; i++)
        if (list[i].pid == (unsigned)pid) return true;
    return false;
}

static void processes_that_use_a_device_are_listed(void **state)
{
    int in[2], out[2], status;
    char ready;
    unsigned long long bytes = 0;
    unsigned none = 0;

    (void)state;
    NVML(nvmlInit_v2());
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid_t child = fork();
    if (!child) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execl("/proc/self/exe", "nvml_cuda_test", "use", (char *)NULL);
        _exit(99);
    }
    close(out[1]);
    close(in[0]);
    assert_int_equal(read(out[0], &ready, 1), 1);
    assert_true(lists(device_at(2), child, &bytes)); /* the first that it sees */
    assert_in_range(bytes, 1 << 20, 2 << 20);
    assert_false(lists(device_at(0), child, &bytes));
    assert_false(lists(device_at(2), getpid(), &bytes)); /* others may use it, this one does not */
    assert_int_equal(nvmlDeviceGetComputeRunningProcesses(device_at(2), &none, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
    assert_true(none >= 1);
    close(in[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(lists(device_at(2), child, &bytes));
    close(out[0]);
    NVML(nvmlShutdown());
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_counts_its_beginnings),         cmocka_unit_test(handles_are_found_by_everything),
        cmocka_unit_test(structures_have_versions),         cmocka_unit_test(links_are_those_of_the_topology),
        cmocka_unit_test(paths_are_those_of_the_topology),  cmocka_unit_test(cuda_sees_what_is_visible),
        cmocka_unit_test(what_is_unknown_is_not_supported), cmocka_unit_test(processes_that_use_a_device_are_listed),
    };
    (void)argv;
    if (argc == 2) return use_a_device();
    char path[] = "/tmp/kolo_nvml_test_XXXXXX";
    int fd = mkstemp(path);

    if (fd < 0 || write(fd, topology, sizeof topology - 1) < 0) return 1;
    close(fd);
    setenv("NCCL_TOPO_FILE", path, 1);
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fake_nvml.c - a libnvidia-ml.so.1 for tests: the machine that FAKE_NVML names, or none.
 *
 *     hopper     2 GPUs of cc 9.0, 18 NVLinks each to two NVSwitches; of GPU 1 one is down; C2C: 5 links, one of them down;
 *                PCIe asleep
 *     volta      2 GPUs of cc 7.0 with 6 NVLinks: 4 between them, 1 to a GPU in a domain of 8 digits, 1 not for peer access
 *     fabric     as hopper, in clique 7 of an NVLink domain; the driver refuses peer access between the GPUs, and GPU 1 does not
 *                tell the far end of its link 3
 *     lost       2 GPUs, of which the first does not answer
 *     empty      no GPU
 *     unloaded   no driver
 *     mismatch   a library that does not fit the driver
 */
#include "compat/cuda/include/nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE __attribute__((visibility("default")))

#ifdef FAKE_STAND_IN
extern const int nvmlKoloStandIn;
FAKE const int nvmlKoloStandIn = 1;
#endif

static int begun;

static int is(const char *machine)
{
    const char *name = getenv("FAKE_NVML");

    return name && !strcmp(name, machine);
}

static int is_hopper(void)
{
    return is("hopper") || is("fabric");
}

static int sm_of(void)
{
    return is_hopper() ? 90 : 70;
}

static unsigned index_of(nvmlDevice_t gpu)
{
    return (unsigned)((size_t)gpu - 1);
}

FAKE nvmlReturn_t nvmlInit_v2(void)
{
#ifdef FAKE_STAND_IN
    abort(); /* never called */
#endif
    if (is("mismatch")) return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    if (!getenv("FAKE_NVML") || is("unloaded")) return NVML_ERROR_DRIVER_NOT_LOADED;
    begun++;
    return NVML_SUCCESS;
}

FAKE nvmlReturn_t nvmlShutdown(void)
{
    if (!begun--) abort();
    return NVML_SUCCESS;
}

FAKE const char *nvmlErrorString(nvmlReturn_t status)
{
    return status == NVML_ERROR_LIB_RM_VERSION_MISMATCH ? "RM has detected an NVML/RM version mismatch." : "Failure";
}

FAKE nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    *count = is("empty") ? 0 : 2;
    return begun ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

FAKE nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *gpu)
{
    if (is("lost") && !index) return NVML_ERROR_GPU_IS_LOST;
    *gpu = (nvmlDevice_t)(size_t)(index + 1);
    return NVML_SUCCESS;
}

static nvmlReturn_t place(unsigned domain, unsigned bus, nvmlPciInfo_t *pci)
{
    *pci = (nvmlPciInfo_t){.domain = domain, .bus = bus, .pciDeviceId = 0x233010de, .pciSubSystemId = 0x16c110de};
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:00.0", domain & 0xffff, bus & 0xff);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:00.0", domain, bus);
    return NVML_SUCCESS;
}

FAKE nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t gpu, nvmlPciInfo_t *pci)
{
    return place(0, index_of(gpu) ? 0xAB : 0x1B, pci);
}

FAKE nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t gpu, int *major, int *minor)
{
    (void)gpu;
    *major = sm_of() / 10;
    *minor = sm_of() % 10;
    return NVML_SUCCESS;
}

FAKE nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t gpu, char *name, unsigned int bytes)
{
    (void)gpu;
    snprintf(name, bytes, "NVIDIA H100 80GB HBM3");
    return NVML_SUCCESS;
}

FAKE nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t gpu, nvmlMemory_t *memory)
{
    (void)gpu;
    *memory = (nvmlMemory_t){.total = 85520809984};
    return NVML_SUCCESS;
}

#define NUMBER(function, value)                                                                                        \
    FAKE nvmlReturn_t function(nvmlDevice_t gpu, unsigned int *number)                                                 \
    {                                                                                                                  \
        (void)gpu;                                                                                                     \
        *number = (value);                                                                                             \
        return NVML_SUCCESS;                                                                                           \
    }

NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, is_hopper() ? 1 : 3)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, is_hopper() ? 5 : 3)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)

FAKE nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t gpu, unsigned int link, nvmlEnableState_t *state)
{
    (void)gpu;
    if (is_hopper()) abort(); /* newer GPUs tell it by a field */
    *state = link < 6 ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

FAKE nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t gpu, unsigned int link, nvmlNvLinkCapability_t capability,
                                                unsigned int *can)
{
    (void)gpu;
    if (capability != NVML_NVLINK_CAP_P2P_SUPPORTED) abort();
    *can = is_hopper() || link != 5;
    return NVML_SUCCESS;
}

FAKE nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t gpu, unsigned int link, nvmlPciInfo_t *pci)
{
    if (is_hopper()) return place(0, link % 2 ? 0xC5 : 0xC4, pci);
    if (link == 4) return place(0x10000, 0x02, pci);
    return place(0, index_of(gpu) ? 0x1B : 0xAB, pci);
}

FAKE nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t gpu, int count, nvmlFieldValue_t *field)
{
    for (int i = 0; i < count; i++) {
        field[i].nvmlReturn = NVML_SUCCESS;
        switch (field[i].fieldId) {
        case 165: /* state of an NVLink */
            field[i].value.uiVal = !(index_of(gpu) == 1 && field[i].scopeId == 7);
            break;
        case 170: /* C2C links: how many, up, MB/s */
            field[i].value.uiVal = 5;
            break;
        case 171:
            field[i].value.uiVal = field[i].scopeId != 4;
            break;
        case 172:
            field[i].value.uiVal = 44712;
            break;
        default:
            field[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        }
    }
    return NVML_SUCCESS;
}

FAKE nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t gpu, unsigned int link,
                                                      nvmlIntNvLinkDeviceType_t *type)
{
    if (is("fabric") && index_of(gpu) == 1 && link == 3) return NVML_ERROR_UNKNOWN;
    *type = is_hopper() ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    return NVML_SUCCESS;
}

FAKE nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t gpu, nvmlGpuFabricInfo_t *info)
{
    (void)gpu;
    *info = (nvmlGpuFabricInfo_t){.state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED};
    if (!is("fabric")) return NVML_SUCCESS;
    info->state = NVML_GPU_FABRIC_STATE_COMPLETED;
    info->cliqueId = 7;
    for (size_t i = 0; i < sizeof info->clusterUuid; i++) info->clusterUuid[i] = (unsigned char)(0xa0 + i);
    return NVML_SUCCESS;
}

FAKE nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index,
                                         nvmlGpuP2PStatus_t *status)
{
    (void)a;
    (void)b;
    *status =
        is("fabric") && index == NVML_P2P_CAPS_INDEX_WRITE ? NVML_P2P_STATUS_DISABLED_BY_REGKEY : NVML_P2P_STATUS_OK;
    return NVML_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
/** device.c - the host's devices: look-up, and their properties. */
#include "compat/cuda/core/memory.h"
#include "compat/cuda/nvml/nvml_state.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- handles ---- */

nvmlDevice_t kl_nvml_handle(const struct kl_cuda_device *device)
{
    return (nvmlDevice_t)(uintptr_t)device;
}

nvmlReturn_t kl_nvml_device(nvmlDevice_t handle, const struct kl_cuda_device **device)
{
    const struct kl_cuda_device *list, *d = (const void *)handle;
    int count;

    KL_NVML_TRY(kl_nvml_ready());
    if (kl_cuda_host_devices(&list, &count)) return NVML_ERROR_UNKNOWN;
    for (int i = 0; i < count; i++) {
        if (d != &list[i]) continue;
        *device = d;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    const struct kl_cuda_device *list;
    int n;

    KL_NVML_TRY(kl_nvml_ready());
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    if (kl_cuda_host_devices(&list, &n)) return NVML_ERROR_UNKNOWN;
    *count = (unsigned)n;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    const struct kl_cuda_device *list;
    int count;

    KL_NVML_TRY(kl_nvml_ready());
    if (!device || kl_cuda_host_devices(&list, &count) || index >= (unsigned)count) return NVML_ERROR_INVALID_ARGUMENT;
    *device = kl_nvml_handle(&list[index]);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* The first device that `is` says yes to. */
static nvmlReturn_t find(bool (*is)(const struct kl_cuda_device *d, const void *what), const void *what,
                         nvmlDevice_t *device)
{
    const struct kl_cuda_device *list;
    int count;

    if (kl_cuda_host_devices(&list, &count)) return NVML_ERROR_UNKNOWN;
    for (int i = 0; i < count; i++) {
        if (!is(&list[i], what)) continue;
        *device = kl_nvml_handle(&list[i]);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

static bool has_place(const struct kl_cuda_device *d, const void *what)
{
    return kl_cuda_place_same(&d->at, what);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device)
{
    struct kl_cuda_place place;

    KL_NVML_TRY(kl_nvml_ready());
    if (!id || !device) return NVML_ERROR_INVALID_ARGUMENT;
    if (!kl_cuda_place_read(id, &place)) return NVML_ERROR_INVALID_ARGUMENT;
    return find(has_place, &place, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

static bool has_uuid(const struct kl_cuda_device *d, const void *what)
{
    char text[41];

    kl_cuda_uuid_text(d->uuid, text);
    return !strcasecmp(text, what);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    KL_NVML_TRY(kl_nvml_ready());
    return uuid && device ? find(has_uuid, uuid, device) : NVML_ERROR_INVALID_ARGUMENT;
}

/* ---- texts ---- */

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int bytes)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    return kl_nvml_text(d->model->name, name, bytes);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int bytes)
{
    const struct kl_cuda_device *d;
    char text[41];

    KL_NVML_TRY(kl_nvml_device(device, &d));
    kl_cuda_uuid_text(d->uuid, text);
    return kl_nvml_text(text, uuid, bytes);
}

/* ---- numbers ---- */

/* A function that stores one number of a device. */
#define NUMBER(name, type, expression)                                                                                 \
    nvmlReturn_t name(nvmlDevice_t device, type *value)                                                                \
    {                                                                                                                  \
        const struct kl_cuda_device *d;                                                                                \
                                                                                                                       \
        KL_NVML_TRY(kl_nvml_device(device, &d));                                                                       \
        if (!value) return NVML_ERROR_INVALID_ARGUMENT;                                                                \
        *value = (type)(expression);                                                                                   \
        return NVML_SUCCESS;                                                                                           \
    }

static nvmlBrandType_t brand_of(const struct kl_cuda_device *d)
{
    static const struct {
        const char *name;
        nvmlBrandType_t brand;
    } brands[] = {{"Tesla", NVML_BRAND_TESLA},
                  {"GeForce", NVML_BRAND_GEFORCE},
                  {"NvidiaRTX", NVML_BRAND_NVIDIA_RTX},
                  {"NVIDIA", NVML_BRAND_NVIDIA}};

    for (size_t i = 0; i < sizeof brands / sizeof brands[0]; i++)
        if (!strcmp(brands[i].name, d->model->brand)) return brands[i].brand;
    return NVML_BRAND_UNKNOWN;
}

static nvmlDeviceArchitecture_t architecture_of(int sm)
{
    return sm >= 100  ? NVML_DEVICE_ARCH_BLACKWELL
           : sm >= 90 ? NVML_DEVICE_ARCH_HOPPER
           : sm == 89 ? NVML_DEVICE_ARCH_ADA
           : sm >= 80 ? NVML_DEVICE_ARCH_AMPERE
           : sm >= 75 ? NVML_DEVICE_ARCH_TURING
           : sm >= 70 ? NVML_DEVICE_ARCH_VOLTA
                      : NVML_DEVICE_ARCH_UNKNOWN;
}

NUMBER(nvmlDeviceGetIndex, unsigned, d->ordinal)
NUMBER(nvmlDeviceGetMinorNumber, unsigned, d->ordinal)
NUMBER(nvmlDeviceGetBrand, nvmlBrandType_t, brand_of(d))
NUMBER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, architecture_of(d->sm))
NUMBER(nvmlDeviceGetNumaNodeId, unsigned, d->numa < 0 ? 0 : d->numa)
NUMBER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, NVML_FEATURE_ENABLED)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, d->pcie_width)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, d->pcie_width)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, d->pcie_generation)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, d->pcie_generation)
NUMBER(nvmlDeviceGetPcieLinkMaxSpeed, unsigned, d->pcie_generation) /* 1: 2.5 GT/s, 2: 5, ... */
NUMBER(nvmlDeviceIsMigDeviceHandle, unsigned, 0)
NUMBER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 0)
NUMBER(nvmlDeviceGetSupportedEventTypes, unsigned long long, 0)

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    if (!major || !minor) return NVML_ERROR_INVALID_ARGUMENT;
    *major = d->sm / 10;
    *minor = d->sm % 10;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *now, unsigned int *pending)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    if (!now || !pending) return NVML_ERROR_INVALID_ARGUMENT;
    *now = *pending = NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
    const struct kl_cuda_device *d;

    (void)index, (void)mig;
    KL_NVML_TRY(kl_nvml_device(device, &d));
    return NVML_ERROR_NOT_FOUND;
}

/* ---- PCI ---- */

nvmlPciInfo_t kl_nvml_pci(const struct kl_cuda_place *at)
{
    nvmlPciInfo_t pci = {.domain = at->domain, .bus = at->bus, .device = at->device};
    const struct kl_cuda_place legacy = {.domain = at->domain & 0xffff, .bus = at->bus, .device = at->device};

    kl_cuda_place_text(&legacy, pci.busIdLegacy, sizeof pci.busIdLegacy);
    snprintf(pci.busId, sizeof pci.busId, "%08X:%02X:%02X.0", at->domain, at->bus & 0xff, at->device & 0xff);
    return pci;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    if (!pci) return NVML_ERROR_INVALID_ARGUMENT;
    *pci = kl_nvml_pci(&d->at);
    pci->pciDeviceId = d->pci_device << 16 | 0x10de;
    pci->pciSubSystemId = d->pci_subsystem;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(device, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
    nvmlPciInfo_t short_form;

    KL_NVML_TRY(nvmlDeviceGetPciInfo_v3(device, &short_form));
    if (!pci) return NVML_ERROR_INVALID_ARGUMENT;
    if (pci->version != nvmlPciInfoExt_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *pci = (nvmlPciInfoExt_t){.version = pci->version,
                              .domain = short_form.domain,
                              .bus = short_form.bus,
                              .device = short_form.device,
                              .pciDeviceId = short_form.pciDeviceId,
                              .pciSubSystemId = short_form.pciSubSystemId,
                              .baseClass = 3,
                              .subClass = 2};
    memcpy(pci->busId, short_form.busId, sizeof pci->busId);
    return NVML_SUCCESS;
}

/* ---- memory: the part of this process ---- */

int kl_nvml_visible(const struct kl_cuda_device *d)
{
    const struct kl_cuda_device *v;
    int count;

    if (kl_cuda_device_count(&count)) return -1;
    for (int i = 0; i < count; i++)
        if (!kl_cuda_device(i, &v) && v == d) return i;
    return -1;
}

nvmlMemory_t kl_nvml_memory(const struct kl_cuda_device *d)
{
    size_t free_bytes = kl_cuda_memory_left(d, kl_nvml_visible(d));

    return (nvmlMemory_t){.total = d->memory, .free = free_bytes, .used = d->memory - free_bytes};
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    if (!memory) return NVML_ERROR_INVALID_ARGUMENT;
    *memory = kl_nvml_memory(d);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    if (!memory) return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlMemory_t m = kl_nvml_memory(d);
    *memory = (nvmlMemory_v2_t){.version = memory->version, .total = m.total, .free = m.free, .used = m.used};
    return NVML_SUCCESS;
}

/* ---- fields ---- */

static nvmlReturn_t field(const struct kl_cuda_device *d, nvmlFieldValue_t *f)
{
    bool c2c = f->fieldId == NVML_FI_DEV_C2C_LINK_COUNT;

    if (f->fieldId != NVML_FI_DEV_NVLINK_LINK_COUNT && !c2c) return NVML_ERROR_NOT_SUPPORTED;
    f->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    f->value.uiVal = (unsigned)(c2c ? d->nc2c : d->nlinks);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    if (count <= 0 || !values) return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) values[i].nvmlReturn = field(d, &values[i]);
    return NVML_SUCCESS;
}

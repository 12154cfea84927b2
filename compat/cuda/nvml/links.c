/* SPDX-License-Identifier: Apache-2.0 */
/** links.c - how devices are joined: NVLinks, PCI, the fabric. */
#include "compat/cuda/nvml/nvml_state.h"
#include "topo/types.h"

/* ---- between two ---- */

static nvmlGpuTopologyLevel_t level_of(const struct kl_cuda_device *a, const struct kl_cuda_device *b)
{
    if (a == b) return NVML_TOPOLOGY_INTERNAL;
    for (int i = 0; i < KL_CUDA_SWITCHES && a->above[i]; i++)
        for (int k = 0; k < KL_CUDA_SWITCHES && b->above[k]; k++)
            if (a->above[i] == b->above[k]) return i || k ? NVML_TOPOLOGY_MULTIPLE : NVML_TOPOLOGY_SINGLE;
    return a->numa == b->numa ? NVML_TOPOLOGY_HOSTBRIDGE : NVML_TOPOLOGY_SYSTEM;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuTopologyLevel_t *level)
{
    const struct kl_cuda_device *first, *second;

    KL_NVML_TRY(kl_nvml_device(a, &first));
    KL_NVML_TRY(kl_nvml_device(b, &second));
    if (!level) return NVML_ERROR_INVALID_ARGUMENT;
    *level = level_of(first, second);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, nvmlGpuP2PCapsIndex_t index,
                                    nvmlGpuP2PStatus_t *status)
{
    const struct kl_cuda_device *first, *second;

    KL_NVML_TRY(kl_nvml_device(a, &first));
    KL_NVML_TRY(kl_nvml_device(b, &second));
    if (!status || (unsigned)index >= NVML_P2P_CAPS_INDEX_UNKNOWN) return NVML_ERROR_INVALID_ARGUMENT;
    struct kl_cuda_path path = kl_cuda_path(first->ordinal, second->ordinal);
    bool nvlink = path.type == KL_PATH_NVL || path.type == KL_PATH_NVB, ok = path.p2p;
    if (index == NVML_P2P_CAPS_INDEX_NVLINK || index == NVML_P2P_CAPS_INDEX_ATOMICS) ok = ok && nvlink;
    if (index == NVML_P2P_CAPS_INDEX_PCI) ok = ok && !nvlink;
    *status = ok ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

/* ---- NVLinks ---- */

/* A link that may be there: *up says whether it is. */
static nvmlReturn_t find(nvmlDevice_t device, unsigned number, const struct kl_cuda_device **d, bool *up)
{
    KL_NVML_TRY(kl_nvml_device(device, d));
    if (!(*d)->nlinks) return NVML_ERROR_NOT_SUPPORTED;
    if (number >= NVML_NVLINK_MAX_LINKS) return NVML_ERROR_INVALID_ARGUMENT;
    *up = number < (unsigned)(*d)->nlinks;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, nvmlEnableState_t *state)
{
    const struct kl_cuda_device *d;
    bool up;

    KL_NVML_TRY(find(device, link, &d, &up));
    if (!state) return NVML_ERROR_INVALID_ARGUMENT;
    *state = up ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link, unsigned int *version)
{
    const struct kl_cuda_device *d;
    bool up;

    KL_NVML_TRY(find(device, link, &d, &up));
    if (!version || !up) return NVML_ERROR_INVALID_ARGUMENT;
    *version = d->sm >= 100 ? 7 : d->sm >= 90 ? 6 : d->sm >= 80 ? 5 : 2; /* NVML's numbers: NVLink 5, 4, 3, 2 */
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link, nvmlNvLinkCapability_t capability,
                                           unsigned int *can)
{
    const struct kl_cuda_device *d;
    bool up;

    KL_NVML_TRY(find(device, link, &d, &up));
    if (!can || (unsigned)capability >= NVML_NVLINK_CAP_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    *can = up && (capability == NVML_NVLINK_CAP_P2P_SUPPORTED || capability == NVML_NVLINK_CAP_P2P_ATOMICS ||
                  capability == NVML_NVLINK_CAP_VALID);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
    const struct kl_cuda_device *d;
    bool up;

    KL_NVML_TRY(find(device, link, &d, &up));
    if (!pci || !up) return NVML_ERROR_INVALID_ARGUMENT;
    *pci = kl_nvml_pci(&d->link[link].at);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, pci);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                 nvmlIntNvLinkDeviceType_t *type)
{
    static const nvmlIntNvLinkDeviceType_t types[] = {[KL_CUDA_LINK_GPU] = NVML_NVLINK_DEVICE_TYPE_GPU,
                                                      [KL_CUDA_LINK_SWITCH] = NVML_NVLINK_DEVICE_TYPE_SWITCH,
                                                      [KL_CUDA_LINK_CPU] = NVML_NVLINK_DEVICE_TYPE_IBMNPU};
    const struct kl_cuda_device *d;
    bool up;

    KL_NVML_TRY(find(device, link, &d, &up));
    if (!type || !up) return NVML_ERROR_INVALID_ARGUMENT;
    *type = types[d->link[link].end];
    return NVML_SUCCESS;
}

/* ---- the fabric: hosts that share an NVLink domain, which a topology of one host does not describe ---- */

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    if (!info) return NVML_ERROR_INVALID_ARGUMENT;
    *info = (nvmlGpuFabricInfo_t){.state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *info)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    if (!info) return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version == nvmlGpuFabricInfo_v3) {
        *info = (nvmlGpuFabricInfoV_t){.version = info->version, .state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED};
    } else if (info->version == nvmlGpuFabricInfo_v2) {
        nvmlGpuFabricInfo_v2_t *old = (void *)info;
        *old = (nvmlGpuFabricInfo_v2_t){.version = old->version, .state = NVML_GPU_FABRIC_STATE_NOT_SUPPORTED};
    } else {
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    }
    return NVML_SUCCESS;
}

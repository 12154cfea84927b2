/* SPDX-License-Identifier: Apache-2.0 */
#include "device/nvml.h"

#include "base/error.h"
#include "base/log.h"
#include "device/gdr.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the part of NVML's binary interface that is used ---- */

enum { SUCCESS = 0, DRIVER_NOT_LOADED = 9, NO_GPUS = 6, CAP_P2P = 0, FIELD_LINK_UP = 165, FIELD_C2C_COUNT = 170 };
enum { FIELD_C2C_UP = 171, FIELD_C2C_MBPS = 172, MAX_GPUS = 64 };

struct handle;

struct pci_info {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char busid[KL_NVML_BUSID];
};

struct memory_info {
    unsigned long long total, free, used;
};

struct field {
    unsigned id, scope;
    long long timestamp, latency_us;
    int type, status;
    union {
        double d;
        unsigned ui;
        unsigned long ul;
        unsigned long long ull;
    } value;
};

struct fabric_info {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

enum { P2P_READ = 0, P2P_WRITE = 1, P2P_OK = 0, FAR_GPU = 0, FAR_NPU = 1, FAR_SWITCH = 2 };

struct library {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error)(int status);
    int (*count)(unsigned *n);
    int (*by_index)(unsigned i, struct handle **gpu);
    int (*pci)(struct handle *gpu, struct pci_info *info);
    int (*name)(struct handle *gpu, char *name, unsigned bytes);
    int (*capability)(struct handle *gpu, int *major, int *minor);
    int (*memory)(struct handle *gpu, struct memory_info *info);
    int (*gen)(struct handle *gpu, unsigned *gen);
    int (*width)(struct handle *gpu, unsigned *width);
    int (*max_gen)(struct handle *gpu, unsigned *gen);
    int (*max_width)(struct handle *gpu, unsigned *width);
    int (*link_state)(struct handle *gpu, unsigned link, unsigned *active);
    int (*link_can)(struct handle *gpu, unsigned link, int capability, unsigned *can);
    int (*link_remote)(struct handle *gpu, unsigned link, struct pci_info *info);
    int (*fields)(struct handle *gpu, int n, struct field *field);
    int (*link_far)(struct handle *gpu, unsigned link, int *type);
    int (*fabric)(struct handle *gpu, struct fabric_info *info);
    int (*p2p)(struct handle *a, struct handle *b, int capability, int *status);
};

static const struct symbol {
    size_t slot;
    const char *name;
    bool needed;
} symbols[] = {
    {offsetof(struct library, init), "nvmlInit_v2", true},
    {offsetof(struct library, shutdown), "nvmlShutdown", true},
    {offsetof(struct library, error), "nvmlErrorString", true},
    {offsetof(struct library, count), "nvmlDeviceGetCount_v2", true},
    {offsetof(struct library, by_index), "nvmlDeviceGetHandleByIndex_v2", true},
    {offsetof(struct library, pci), "nvmlDeviceGetPciInfo_v3", true},
    {offsetof(struct library, capability), "nvmlDeviceGetCudaComputeCapability", true},
    {offsetof(struct library, name), "nvmlDeviceGetName", false},
    {offsetof(struct library, memory), "nvmlDeviceGetMemoryInfo", false},
    {offsetof(struct library, gen), "nvmlDeviceGetCurrPcieLinkGeneration", false},
    {offsetof(struct library, width), "nvmlDeviceGetCurrPcieLinkWidth", false},
    {offsetof(struct library, max_gen), "nvmlDeviceGetMaxPcieLinkGeneration", false},
    {offsetof(struct library, max_width), "nvmlDeviceGetMaxPcieLinkWidth", false},
    {offsetof(struct library, link_state), "nvmlDeviceGetNvLinkState", false},
    {offsetof(struct library, link_can), "nvmlDeviceGetNvLinkCapability", false},
    {offsetof(struct library, link_remote), "nvmlDeviceGetNvLinkRemotePciInfo_v2", false},
    {offsetof(struct library, fields), "nvmlDeviceGetFieldValues", false},
    {offsetof(struct library, link_far), "nvmlDeviceGetNvLinkRemoteDeviceType", false},
    {offsetof(struct library, fabric), "nvmlDeviceGetGpuFabricInfo", false},
    {offsetof(struct library, p2p), "nvmlDeviceGetP2PStatus", false},
};

/* ---- one GPU ---- */

static int number(int (*ask)(struct handle *, unsigned *), struct handle *gpu)
{
    unsigned value = 0;

    return ask && ask(gpu, &value) == SUCCESS && value < 1u << 16 ? (int)value : 0;
}

static bool field(const struct library *l, struct handle *gpu, unsigned id, unsigned scope, unsigned *value)
{
    struct field f = {.id = id, .scope = scope};

    if (!l->fields || l->fields(gpu, 1, &f) != SUCCESS || f.status != SUCCESS) return false;
    *value = f.value.ui;
    return true;
}

/* How many NVLinks a GPU of this compute capability may have. */
static unsigned links_of(int sm)
{
    return sm < 60 ? 0 : sm < 70 ? 4 : sm < 80 ? 6 : sm < 90 ? 12 : KL_NVML_LINKS;
}

static bool link_is_up(const struct library *l, struct handle *gpu, int sm, unsigned link)
{
    unsigned value = 0;

    if (!l->link_can || l->link_can(gpu, link, CAP_P2P, &value) != SUCCESS || !value) return false;
    if (sm >= 90 && field(l, gpu, FIELD_LINK_UP, link, &value)) return value == 1;
    return l->link_state && l->link_state(gpu, link, &value) == SUCCESS && value == 1;
}

static enum kl_nvml_far far_end(const struct library *l, struct handle *gpu, unsigned link)
{
    int type = -1;

    if (!l->link_far) return KL_NVML_FAR_UNASKED;
    if (l->link_far(gpu, link, &type) != SUCCESS) return KL_NVML_FAR_UNREADABLE;
    return type == FAR_SWITCH ? KL_NVML_FAR_SWITCH
           : type == FAR_GPU  ? KL_NVML_FAR_GPU
           : type == FAR_NPU  ? KL_NVML_FAR_NPU
                              : KL_NVML_FAR_UNREADABLE;
}

static void read_links(const struct library *l, struct handle *gpu, struct kl_nvml_gpu *g)
{
    for (unsigned i = 0; i < links_of(g->sm); i++) {
        struct pci_info far = {0};

        if (!link_is_up(l, gpu, g->sm, i)) continue;
        if (!l->link_remote || l->link_remote(gpu, i, &far) != SUCCESS) continue;
        g->far[g->nlinks] = far_end(l, gpu, i);
        snprintf(g->link[g->nlinks++], KL_NVML_BUSID, "%.31s", far.busid);
    }
}

/* All links are as fast as the last. */
static void read_c2c(const struct library *l, struct handle *gpu, struct kl_nvml_gpu *g)
{
    unsigned n = 0, up, mbps;

    if (g->sm < 90 || !field(l, gpu, FIELD_C2C_COUNT, 0, &n)) return;
    for (unsigned i = 0; i < n && i < 64; i++) {
        if (!field(l, gpu, FIELD_C2C_UP, i, &up) || up != 1 || !field(l, gpu, FIELD_C2C_MBPS, i, &mbps)) continue;
        g->c2c_links++;
        g->c2c_mbps = mbps < 1u << 30 ? (int)mbps : 0;
    }
}

static void read_fabric(const struct library *l, struct handle *gpu, struct kl_nvml_gpu *g)
{
    struct fabric_info info = {.state = KL_NVML_FABRIC_NONE};

    if (!l->fabric || l->fabric(gpu, &info) != SUCCESS || info.state > KL_NVML_FABRIC_READY) return;
    g->fabric = (enum kl_nvml_fabric)info.state;
    if (g->fabric != KL_NVML_FABRIC_READY || info.status != SUCCESS) return;
    g->clique = info.clique;
    for (int i = 0; i < 16; i++) snprintf(g->cluster + (size_t)(2 * i), 3, "%02x", info.cluster[i]);
}

static bool may_access(const struct library *l, struct handle *a, struct handle *b)
{
    int read = P2P_OK, write = P2P_OK;

    if (l->p2p(a, b, P2P_READ, &read) != SUCCESS || l->p2p(a, b, P2P_WRITE, &write) != SUCCESS) return false;
    return read == P2P_OK && write == P2P_OK;
}

static void read_peers(const struct library *l, unsigned index, unsigned n, struct kl_nvml_gpu *g)
{
    struct handle *gpu, *peer;

    if (!l->p2p || l->by_index(index, &gpu) != SUCCESS) return;
    for (unsigned i = 0; i < n; i++)
        if (i != index && l->by_index(i, &peer) == SUCCESS && !may_access(l, gpu, peer)) g->no_p2p |= (uint64_t)1 << i;
}

/* False: without these facts it is no GPU that anything could be planned with. */
static bool read_gpu(const struct library *l, unsigned index, struct kl_nvml_gpu *g)
{
    struct memory_info memory = {0};
    struct pci_info pci = {0};
    struct handle *gpu;
    int major = 0, minor = 0;

    *g = (struct kl_nvml_gpu){.index = (int)index};
    if (l->by_index(index, &gpu) != SUCCESS || l->pci(gpu, &pci) != SUCCESS) return false;
    if (l->capability(gpu, &major, &minor) != SUCCESS || major < 0 || major > 99 || minor < 0 || minor > 9)
        return false;
    g->sm = major * 10 + minor;
    snprintf(g->busid, sizeof g->busid, "%.31s", pci.busid);
    g->pci_id = pci.id;
    g->pci_subsystem = pci.subsystem;
    if (l->name && l->name(gpu, g->name, sizeof g->name) != SUCCESS) *g->name = 0;
    g->name[sizeof g->name - 1] = 0;
    if (l->memory && l->memory(gpu, &memory) == SUCCESS) g->memory = memory.total;
    g->pcie_gen = number(l->gen, gpu);
    g->pcie_width = number(l->width, gpu);
    g->pcie_max_gen = number(l->max_gen, gpu);
    g->pcie_max_width = number(l->max_width, gpu);
    read_links(l, gpu, g);
    read_c2c(l, gpu, g);
    read_fabric(l, gpu, g);
    return true;
}

/* ---- all ---- */

static ncclResult_t read_gpus(const struct library *l, struct kl_nvml *facts)
{
    unsigned n = 0;
    int status = l->count(&n);

    if (status != SUCCESS) {
        snprintf(facts->problem, sizeof facts->problem, "NVML cannot count the GPUs: %s", l->error(status));
        return ncclSuccess;
    }
    if (n > MAX_GPUS) n = MAX_GPUS;
    facts->gpu = calloc(n + 1, sizeof *facts->gpu);
    if (!facts->gpu) return KL_NOMEM("GPUs");
    for (unsigned i = 0; i < n; i++) {
        struct kl_nvml_gpu *g = &facts->gpu[facts->ngpus];

        if (read_gpu(l, i, g)) {
            read_peers(l, i, n, g);
            facts->ngpus++;
            continue;
        }
        snprintf(facts->problem, sizeof facts->problem,
                 "NVML does not describe GPU %u, which is left out; nvidia-smi tells its state", i);
    }
    kl_gdr_read(facts->gpu, facts->ngpus);
    return ncclSuccess;
}

static ncclResult_t ask(const struct library *l, struct kl_nvml *facts)
{
    int status = l->init();

    if (status == DRIVER_NOT_LOADED || status == NO_GPUS) {
        KL_INFO(KL_INIT, "NVML: %s", l->error(status));
        return ncclSuccess;
    }
    if (status != SUCCESS) {
        snprintf(facts->problem, sizeof facts->problem, "NVML does not start (%s), so GPUs are not seen",
                 l->error(status));
        return ncclSuccess;
    }
    ncclResult_t rc = read_gpus(l, facts);
    l->shutdown();
    return rc;
}

/* The first missing symbol, NULL if none is. */
static const char *look_up(void *from, struct library *l)
{
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = dlsym(from, symbols[i].name);

        if (!found && symbols[i].needed) return symbols[i].name;
        memcpy((char *)l + symbols[i].slot, &found, sizeof found);
    }
    return NULL;
}

ncclResult_t kl_nvml_read(struct kl_nvml *facts)
{
    struct library l = {0};
    ncclResult_t rc = ncclSuccess;

    *facts = (struct kl_nvml){0};
    void *from = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!from) return ncclSuccess;
    if (!dlsym(from, "nvmlKoloStandIn")) {
        const char *missing = look_up(from, &l);

        if (missing)
            snprintf(facts->problem, sizeof facts->problem, "libnvidia-ml.so.1 has no %s, so GPUs are not seen",
                     missing);
        else
            rc = ask(&l, facts);
    }
    dlclose(from);
    if (rc) kl_nvml_fini(facts);
    return rc;
}

void kl_nvml_fini(struct kl_nvml *facts)
{
    free(facts->gpu);
    *facts = (struct kl_nvml){0};
}

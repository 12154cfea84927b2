/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/product.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- NVIDIA's GPUs ---- */

#define CARD(name, sm, pcie, ...)                                                                                      \
    {                                                                                                                  \
        name, {__VA_ARGS__}, sm, KL_FORM_CARD, 0, false, pcie, false                                                   \
    }
#define BRIDGE(name, sm, links, pcie, ...)                                                                             \
    {                                                                                                                  \
        name, {__VA_ARGS__}, sm, KL_FORM_BRIDGE, links, false, pcie, false                                             \
    }
#define MESH(name, sm, links, pcie, ...)                                                                               \
    {                                                                                                                  \
        name, {__VA_ARGS__}, sm, KL_FORM_BOARD, links, false, pcie, false                                              \
    }
#define BOARD(name, sm, links, pcie, ...)                                                                              \
    {                                                                                                                  \
        name, {__VA_ARGS__}, sm, KL_FORM_BOARD, links, true, pcie, false                                               \
    }
#define RACK(name, sm, links, pcie, ...)                                                                               \
    {                                                                                                                  \
        name, {__VA_ARGS__}, sm, KL_FORM_BOARD, links, true, pcie, true                                                \
    }

static const struct kl_gpu_product gpus[] = {
    MESH("P100 SXM2", 60, 4, 3, 0x15f9),
    CARD("P100 PCIe", 60, 3, 0x15f7, 0x15f8),
    MESH("V100 SXM2 16 GB", 70, 6, 3, 0x1db1, 0x1df5),
    MESH("V100 SXM2 32 GB", 70, 6, 3, 0x1db5),
    BOARD("V100 SXM3 32 GB", 70, 6, 3, 0x1db8),
    CARD("V100 PCIe", 70, 3, 0x1db4, 0x1db6, 0x1df6, 0x1db3),
    BRIDGE("V100 DGX Station", 70, 4, 3, 0x1db2, 0x1db7),
    CARD("T4", 75, 3, 0x1eb8, 0x1eb4),
    CARD("A10", 86, 4, 0x2236),
    CARD("A10G", 86, 4, 0x2237),
    CARD("A2 or A16", 86, 4, 0x25b6),
    BRIDGE("A30", 80, 4, 4, 0x20b7),
    BRIDGE("A40", 86, 4, 4, 0x2235),
    BRIDGE("RTX A6000", 86, 4, 4, 0x2230),
    BRIDGE("RTX A5000", 86, 4, 4, 0x2231),
    BRIDGE("RTX 3090", 86, 4, 4, 0x2204, 0x2203),
    BOARD("A100 SXM4 40 GB", 80, 12, 4, 0x20b0),
    BOARD("A100 SXM4 80 GB", 80, 12, 4, 0x20b2),
    MESH("A100 SXM 64 GB", 80, 12, 4, 0x20b3),
    BRIDGE("A100 PCIe 40 GB", 80, 12, 4, 0x20b1, 0x20f1),
    BRIDGE("A100 PCIe 80 GB", 80, 12, 4, 0x20b5, 0x20b8),
    BOARD("A800 SXM4 40 GB", 80, 8, 4, 0x20bd),
    BOARD("A800 SXM4 80 GB", 80, 8, 4, 0x20f3),
    BRIDGE("A800 PCIe", 80, 8, 4, 0x20f5, 0x20f6),
    CARD("L4", 89, 4, 0x27b8),
    CARD("L40", 89, 4, 0x26b5, 0x26b8),
    CARD("L40S", 89, 4, 0x26b9),
    CARD("L20", 89, 4, 0x26ba, 0x26b7),
    CARD("RTX 6000 Ada", 89, 4, 0x26b1),
    CARD("RTX 4000 Ada", 89, 4, 0x27b2),
    CARD("RTX 4090", 89, 4, 0x2684),
    BOARD("H100 SXM5", 90, 18, 5, 0x2330, 0x2336, 0x2337, 0x2338, 0x2339),
    BRIDGE("H100 PCIe", 90, 12, 5, 0x2331, 0x2313),
    BRIDGE("H100 NVL", 90, 12, 5, 0x2321),
    BOARD("H800 SXM5", 90, 8, 5, 0x2324),
    BRIDGE("H800 PCIe", 90, 8, 5, 0x2322, 0x233a),
    BOARD("H200 SXM5", 90, 18, 5, 0x2335),
    BRIDGE("H200 NVL", 90, 18, 5, 0x233b),
    BOARD("H20 SXM5", 90, 18, 5, 0x2329, 0x232c, 0x2328, 0x230c, 0x230e),
    {"GH200", {0x2342, 0x2348}, 90, KL_FORM_CHIP, 18, false, 5, true},
    BOARD("B100", 100, 18, 5, 0x29bc, 0x2920),
    BOARD("B200", 100, 18, 5, 0x2901, 0x2909),
    RACK("GB200", 100, 18, 5, 0x2941),
    BOARD("B300 SXM6", 103, 18, 6, 0x3182),
    RACK("GB300", 103, 18, 6, 0x31c2, 0x31c3, 0x31a1),
    CARD("RTX PRO 6000 Blackwell", 120, 5, 0x2bb1, 0x2bb4, 0x2bb5, 0x2bb2),
    CARD("RTX 5090", 120, 5, 0x2b85),
    {"GB10", {0x2e12}, 121, KL_FORM_CHIP, 0, false, 5, true},
};
static const int ngpus = sizeof gpus / sizeof gpus[0];

const struct kl_gpu_product *kl_gpu_product_of(int vendor, int device)
{
    for (int i = 0; vendor == KL_VENDOR_ID_NVIDIA && device && i < ngpus; i++)
        for (int k = 0; k < KL_PRODUCT_IDS; k++)
            if (gpus[i].device[k] == device) return &gpus[i];
    return NULL;
}

const struct kl_gpu_product *kl_gpu_product_named(const char *name)
{
    for (int i = 0; i < ngpus; i++)
        if (!strcmp(gpus[i].name, name)) return &gpus[i];
    return NULL;
}

/* ---- names as drivers write them ---- */

/* Is `word` one of the words of a name, or, as memory is written, how one of them begins? */
static bool has_word(const char *name, const char *word, size_t length, bool begins)
{
    for (const char *at = name; *at;) {
        size_t n = strcspn(at, " -");

        if ((n == length || (begins && n > length)) && !strncasecmp(at, word, length)) return true;
        at += n + (at[n] != 0);
    }
    return false;
}

/* How well a name as nvidia-smi writes it fits a product: -1 not at all. SXM and memory need not be in it. */
static int fit(const char *name, const char *product)
{
    bool other = has_word(name, "PCIe", 4, false) || has_word(name, "NVL", 3, false);
    int score = 0;

    for (const char *at = product; *at;) {
        size_t n = strcspn(at, " ");
        const char *next = at + n + (at[n] != 0);
        bool sxm = !strncmp(at, "SXM", 3), memory = !strncmp(next, "GB", 2), unit = n == 2 && !strncmp(at, "GB", 2);
        bool has = has_word(name, at, n, memory);

        if ((sxm && other) || (!has && !sxm && !memory && !unit)) return -1;
        score += has;
        at = next;
    }
    return score;
}

const struct kl_gpu_product *kl_gpu_product_like(const char *name)
{
    const struct kl_gpu_product *best = NULL;
    int score = 0;

    for (int i = 0; *name && i < ngpus; i++)
        if (fit(name, gpus[i].name) > score) {
            best = &gpus[i];
            score = fit(name, gpus[i].name);
        }
    return best;
}

/* Products outside the table, by patterns of their names. '#' is a digit, '+' one from 5 on. The first match counts: newer
 * cards reuse the numbers of older ones, with the kind in the name. */
static const struct {
    const char *word;
    int sm;
} families[] = {
    {"Blackwell", 120}, {"Ada", 89},      {"Quadro RTX", 75}, {"TITAN RTX", 75}, {"TITAN V", 70},  {"TITAN X", 61},
    {"RTX 50+0", 120},  {"RTX 40+0", 89}, {"RTX 30+0", 86},   {"RTX 20+0", 75},  {"RTX #000", 75}, {"RTX A#000", 86},
    {"RTX A#500", 86},  {"A#000", 86},    {"A#500", 86},      {"GTX 16#0", 75},  {"GTX 10#0", 61}, {"GB300", 103},
    {"B300", 103},      {"GB200", 100},   {"B200", 100},      {"B100", 100},     {"GH200", 90},    {"H100", 90},
    {"H200", 90},       {"H800", 90},     {"H20", 90},        {"A100", 80},      {"A800", 80},     {"A30", 80},
    {"A10", 86},        {"A16", 86},      {"A2", 86},         {"A40", 86},       {"L2", 89},       {"L4", 89},
    {"L20", 89},        {"L40", 89},      {"V100", 70},       {"T4", 75},        {"T#00", 75},     {"T#000", 75},
    {"P100", 60},       {"P40", 61},      {"P4", 61},         {"P#000", 61},     {"Thor", 110},    {"Orin", 87},
};

static bool is_like(const char *at, const char *word)
{
    for (; *word; word++, at++) {
        bool digit = isdigit((unsigned char)*at);

        if (*word == '#' ? !digit : *word == '+' ? !(digit && *at >= '5') : tolower(*at) != tolower(*word))
            return false;
    }
    return !isdigit((unsigned char)*at); /* "4090D" is, "A100" is no A10 */
}

int kl_gpu_sm_like(const char *name)
{
    const struct kl_gpu_product *p = kl_gpu_product_like(name);

    for (size_t i = 0; !p && i < sizeof families / sizeof families[0]; i++)
        for (const char *at = name; *at; at++)
            if ((at == name || !isalnum((unsigned char)at[-1])) && is_like(at, families[i].word)) return families[i].sm;
    return p ? p->sm : 0;
}

/* ---- NICs ---- */

const struct kl_nic_traits kl_nic_traits[KL_NIC_KINDS] = {
    [KL_NIC_INFINIBAND] = {"0x020700", "0x15b3", "0x1021", 0, 131072, true},
    [KL_NIC_ROCE] = {"0x020000", "0x15b3", "0x1021", 0, 131072, true},
    [KL_NIC_EFA] = {"0x020000", "0x1d0f", "0xefa1", 75, 1024, true},
    [KL_NIC_SLINGSHOT] = {"0x020000", "0x17db", "0x0501", 0, 1024, true},
    [KL_NIC_SOCKETS] = {"0x020000", "0x0000", "0x0000", 0, 65536, false},
    /* TCP with payload in GPU memory */
    [KL_NIC_TCPX] = {"0x020000", "0x1ae0", "0x0042", 0, 65536, true},
};

static const struct kl_nic_product nics[] = {
    {"ConnectX-4", 0x15b3, 0x1013, 100, KL_NIC_ROCE},
    {"ConnectX-4 Lx", 0x15b3, 0x1015, 25, KL_NIC_ROCE},
    {"ConnectX-5", 0x15b3, 0x1017, 100, KL_NIC_ROCE},
    {"ConnectX-5 Ex", 0x15b3, 0x1019, 100, KL_NIC_ROCE},
    {"ConnectX-6", 0x15b3, 0x101b, 200, KL_NIC_ROCE},
    {"ConnectX-6", 0x15b3, 0x101c, 200, KL_NIC_ROCE},
    {"ConnectX-6 Dx", 0x15b3, 0x101d, 100, KL_NIC_ROCE},
    {"ConnectX-7", 0x15b3, 0x1021, 400, KL_NIC_ROCE},
    {"ConnectX-8", 0x15b3, 0x1023, 800, KL_NIC_ROCE},
    {"BlueField-2", 0x15b3, 0xa2d6, 100, KL_NIC_ROCE},
    {"BlueField-3", 0x15b3, 0xa2dc, 400, KL_NIC_ROCE},
    {"EFA", 0x1d0f, 0xefa0, 100, KL_NIC_EFA},
    {"EFA", 0x1d0f, 0xefa1, 100, KL_NIC_EFA},
    {"EFA", 0x1d0f, 0xefa2, 200, KL_NIC_EFA},
    {"EFA", 0x1d0f, 0xefa3, 400, KL_NIC_EFA},
    {"EFA", 0x1d0f, 0xefa4, 400, KL_NIC_EFA},
    {"ENA", 0x1d0f, 0xec20, 25, KL_NIC_SOCKETS},
    {"gVNIC", 0x1ae0, 0x0042, 100, KL_NIC_SOCKETS},
    {"Slingshot", 0x17db, 0x0501, 200, KL_NIC_SLINGSHOT},
};

const struct kl_nic_product *kl_nic_product_of(int vendor, int device)
{
    for (size_t i = 0; i < sizeof nics / sizeof nics[0]; i++)
        if (nics[i].vendor == vendor && nics[i].device == device) return &nics[i];
    return NULL;
}

const struct kl_nic_product *kl_nic_product_like(const char *text)
{
    const struct kl_nic_product *best = NULL;

    for (size_t i = 0; i < sizeof nics / sizeof nics[0]; i++)
        if (strstr(text, nics[i].name) && (!best || strlen(nics[i].name) > strlen(best->name))) best = &nics[i];
    return best;
}

/* ---- links ---- */

float kl_xgmi_bw(const char *gcn)
{
    static const struct {
        const char *gcn;
        float bw;
    } rows[] = {{"906", 24}, {"908", 24}, {"90a", 36}, {"910", 36}, {"94", 48}, {"95", 48}};

    if (!strncmp(gcn, "gfx", 3)) gcn += 3;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!strncmp(gcn, rows[i].gcn, strlen(rows[i].gcn))) return rows[i].bw;
    return 0;
}

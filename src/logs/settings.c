/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/settings.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A value matches when it is one of the words ("|" between them), or, with `most`, a number up to that. */
static const struct {
    const char *name, *values;
    long most;
    enum kl_log_weight weight;
    const char *text;
} table[] = {
    {"NCCL_P2P_DISABLE", "1", 0, KL_LOG_COSTS,
     "GPUs do not access each other's memory: neither NVLink nor P2P over PCIe is used"},
    {"NCCL_SHM_DISABLE", "1", 0, KL_LOG_COSTS, "ranks of a host without P2P communicate through the network"},
    {"NCCL_IB_DISABLE", "1", 0, KL_LOG_COSTS, "InfiniBand and RoCE are not used"},
    {"NCCL_NET", "socket", 0, KL_LOG_COSTS, "data between hosts go over TCP"},
    {"NCCL_NET_GDR_LEVEL", "LOC|0", 0, KL_LOG_COSTS, "GPUDirect RDMA is switched off"},
    {"NCCL_P2P_LEVEL", "LOC|0", 0, KL_LOG_COSTS, "P2P is switched off"},
    {"NCCL_P2P_LEVEL", "NVL", 0, KL_LOG_REMARK, "P2P is used over NVLink only"},
    {"NCCL_NVLS_ENABLE", "0", 0, KL_LOG_COSTS, "NVLS is off: rings and trees alone carry the data"},
    {"NCCL_MAX_NCHANNELS", NULL, 4, KL_LOG_COSTS, "so few channels cannot saturate the links"},
    {"NCCL_MAX_CTAS", NULL, 4, KL_LOG_COSTS, "so few channels cannot saturate the links"},
    {"NCCL_MAX_NRINGS", NULL, 4, KL_LOG_COSTS, "so few channels cannot saturate the links"},
    {"NCCL_MAX_NCHANNELS", "", 0, KL_LOG_REMARK, "channels are limited"},
    {"NCCL_MAX_CTAS", "", 0, KL_LOG_REMARK, "channels are limited"},
    {"NCCL_BUFFSIZE", NULL, 1048576, KL_LOG_COSTS, "such small buffers cannot hide a network's latency"},
    {"NCCL_ALGO", "", 0, KL_LOG_REMARK, "algorithms are chosen by hand"},
    {"NCCL_PROTO", "LL", 0, KL_LOG_COSTS, "the LL protocol reaches half of the bandwidth or less"},
    {"NCCL_PROTO", "", 0, KL_LOG_REMARK, "protocols are chosen by hand"},
    {"NCCL_GRAPH_FILE", "", 0, KL_LOG_REMARK, "rings and trees come from a file, not from a search"},
    {"NCCL_TOPO_FILE", "", 0, KL_LOG_REMARK, "NCCL plans for the machine that this file describes"},
    {"NCCL_PXN_DISABLE", "1", 0, KL_LOG_REMARK, "GPUs do not send through the NIC of another GPU"},
    {"NCCL_CUMEM_ENABLE", "0", 0, KL_LOG_REMARK, "memory is shared the older way (CUDA IPC), which rules out NVLS"},
    {"NCCL_NET_PLUGIN", "none", 0, KL_LOG_REMARK, "no network plugin is looked for"},
    {"NCCL_NTHREADS", NULL, 128, KL_LOG_COSTS, "so few threads per channel cannot saturate fast links"},
};

static bool is_word(const char *words, const char *value)
{
    size_t n = strlen(value);

    for (const char *at = words; *at;) {
        size_t length = strcspn(at, "|");

        if (length == n && !strncasecmp(at, value, n)) return true;
        at += length + (at[length] == '|');
    }
    return !*words;
}

static bool is_most(const char *value, long most)
{
    char *end;
    long number = strtol(value, &end, 10);

    return end != value && !*end && number > 0 && number <= most;
}

int kl_log_setting_find(const char *name, const char *value, enum kl_log_weight *weight)
{
    for (size_t i = 0; *value && i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].name, name)) continue;
        if (table[i].values ? !is_word(table[i].values, value) : !is_most(value, table[i].most)) continue;
        *weight = table[i].weight;
        return (int)i;
    }
    return -1;
}

const char *kl_log_setting_text(int row)
{
    return row >= 0 && row < (int)(sizeof table / sizeof table[0]) ? table[row].text : "";
}

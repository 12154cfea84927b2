/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/config.h"

#include "coll/select/model.h"
#include "os/hostinfo.h"

#include <stdio.h>

static const char *const check_modes[] = {"DEFAULT", "DEBUG_LOCAL", "DEBUG_GLOBAL", "FIRST_USE", NULL};

static const char *const kernel_copies[] = {"AUTO", "NEVER", "ALWAYS", NULL};

/*
 * Alike: the size of steps (NCCL_BUFFSIZE), whether calls are compared before data move, the order of additions, and
 * whether all connections are made with the communicator. The way of data from one rank to another is negotiated
 * between the two, so each may have its own settings. One NVLink domain has all ranks of a host, or none.
 */
static const struct kl_param rows[] = {
    KL_PARAM_INT(struct kl_comm_config, bootstrap_timeout_s, "KOLO_BOOTSTRAP_TIMEOUT", KL_OWN, "60", 1, 86400,
                 "seconds to wait for other ranks while a communicator is set up"),
    KL_PARAM_INT(struct kl_comm_config, timeout_s, "KOLO_TIMEOUT", KL_OWN, "0", 0, 604800,
                 "seconds after which an operation that makes no progress fails; 0 is never"),
    KL_PARAM_SIZE(struct kl_comm_config, buffer_bytes, "NCCL_BUFFSIZE", KL_ALIKE, "-2", 4096, 1 << 30,
                  "buffer of one connection between two ranks; -2 lets Kolo decide"),
    KL_PARAM_BOOL(struct kl_comm_config, runtime_connect, "NCCL_RUNTIME_CONNECT", KL_ALIKE, "1",
                  "make an algorithm's connections at its first use; 0: when a communicator is made"),
    KL_PARAM_INT(struct kl_comm_config, round_peers, "NCCL_CONNECT_ROUND_MAX_PEERS", KL_OWN, "128", 1, INT32_MAX,
                 "ranks that one rank connects with at a time"),
    KL_PARAM_ENUM(struct kl_comm_config, check_mode, "NCCL_CHECK_MODE", KL_ALIKE, "DEFAULT", check_modes,
                  "DEBUG_GLOBAL compares the calls of all ranks before data move, FIRST_USE each call the first time"),
    KL_PARAM_BOOL(
        struct kl_comm_config, deterministic, "KOLO_DETERMINISTIC", KL_ALIKE, "0",
        "reduce floating-point numbers in the order of ranks: the same bits on any machine, with any NCCL_ALGO"),
    KL_PARAM_BOOL(struct kl_comm_config, peer_direct, "KOLO_MAPPED", KL_OWN, "1",
                  "large operations and messages work in the ranks' own buffers where others can map them; 0: never"),
    KL_PARAM_ENUM(struct kl_comm_config, kernel_copies, "KOLO_KERNEL_COPIES", KL_OWN, "AUTO", kernel_copies,
                  "the kernel copies large data between processes (CMA); AUTO: where that is estimated to be faster "
                  "than staging"),
    KL_PARAM_LIST(
        struct kl_comm_config, select, "KOLO_SELECT", KL_ALIKE, "", kl_select_word_names,
        "force how data are copied on one host, hierarchical reductions, stores; FIXED: nothing changes later"),
    KL_PARAM_STRING(
        struct kl_comm_config, profile, "KOLO_PROFILE", KL_SETTLED, "",
        "measurements that the first rank of a host takes instead of its own, as INFO shows them: line=147"),
    KL_PARAM_BOOL(struct kl_comm_config, huge_pages, "KOLO_HUGE_PAGES", KL_OWN, "1",
                  "memory that large operations use again and again gets huge pages, where Linux has them; 0: never"),
    KL_PARAM_BOOL(struct kl_comm_config, ahead, "KOLO_AHEAD", KL_OWN, "1",
                  "post data of queued operations early, where that is safe; 0: when the operation runs"),
    KL_PARAM_BOOL(struct kl_comm_config, local_register, "NCCL_LOCAL_REGISTER", KL_OWN, "1",
                  "keep buffers given to ncclCommRegister mapped; 0: registering does nothing"),
    KL_PARAM_INT(struct kl_comm_config, blocking, "NCCL_COMM_BLOCKING", KL_OWN, "-1", 0, 1,
                 "0: calls that take long return ncclInProgress; overrides `blocking` of ncclConfig_t"),
    KL_PARAM_STRING(struct kl_comm_config, net, "NCCL_NET", KL_OWN, "",
                    "name of the network between hosts; overrides `netName` of ncclConfig_t"),
    KL_PARAM_INT(struct kl_comm_config, dump_signal, "NCCL_PROXY_DUMP_SIGNAL", KL_OWN, "-1", 1, 64,
                 "number of a signal at which the process prints the state of its operations"),
    KL_PARAM_STRING(
        struct kl_comm_config, flight_recorder, "KOLO_FLIGHT_RECORDER", KL_OWN, "",
        "file for a communicator's last operations when it fails; %h host, %p process, %r rank, %c communicator"),
    KL_PARAM_BOOL(struct kl_comm_config, ras_enable, "NCCL_RAS_ENABLE", KL_OWN, "1",
                  "answer questions about the state of the job: `kolo ras`, and NCCL's ncclras"),
    KL_PARAM_STRING(struct kl_comm_config, ras_address, "NCCL_RAS_ADDR", KL_OWN, "localhost:28028",
                    "host:port where one process of a host listens for such questions"),
    KL_PARAM_INT(struct kl_comm_config, ras_timeout_factor, "NCCL_RAS_TIMEOUT_FACTOR", KL_OWN, "1", 1, 1000,
                 "factor for the 2 seconds to wait for other processes before they count as missing"),
    KL_PARAM_STRING(struct kl_comm_config, trace, "KOLO_TRACE", KL_OWN, "",
                    "file for a trace in Chrome's format; %h host, %p process, %r rank, %c communicator"),
    KL_PARAM_INT(struct kl_comm_config, trace_events, "KOLO_TRACE_EVENTS", KL_OWN, "65536", 1024, 1 << 24,
                 "number of calls and other events that a trace keeps: the last ones"),
    KL_PARAM_STRING(struct kl_comm_config, hostid, "NCCL_HOSTID", KL_OWN, "",
                    "name of this host: ranks with the same name share a host; tells emulated hosts apart"),
    KL_PARAM_INT(struct kl_comm_config, mnnvl, "KOLO_MNNVL", KL_HOST_ALIKE, "0", 0, INT32_MAX,
                 "emulated hosts with the same number are one NVLink domain; 1: for `kolo graph`, all hosts are"),
};

const struct kl_param_set kl_comm_param_set = KL_PARAM_SET("comm", struct kl_comm_config, rows);

void kl_comm_config_load(struct kl_comm_config *config)
{
    kl_param_load(&kl_comm_param_set, config);
}

void kl_comm_config_host(const struct kl_comm_config *config, char *name, size_t bytes)
{
    char own[KL_HOSTNAME];

    kl_hostinfo_name(own);
    snprintf(name, bytes, "%s", *config->hostid ? config->hostid : own);
}

bool kl_comm_config_blocking(const struct kl_comm_config *config, const struct kl_nccl_config *nccl_config)
{
    return config->blocking >= 0 ? config->blocking : kl_nccl_config_or(nccl_config->blocking, 1);
}

const char *kl_comm_config_net(const struct kl_comm_config *config, const struct kl_nccl_config *nccl_config)
{
    return *config->net ? config->net : nccl_config->net;
}

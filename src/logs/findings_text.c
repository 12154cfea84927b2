/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/findings.h"
#include "logs/settings.h"
#include "topo/anomaly.h"

#include <string.h>

static const struct {
    const char *name, *remedy;
} codes[KL_LOG_CODES] = {
    [KL_FOUND_CAUSE] = {"cause", NULL},
    [KL_FOUND_VERSIONS_DIFFER] = {"versions_differ", NULL},
    [KL_FOUND_ALONE] = {"alone", "nccl-tests: rebuild with MPI=1 MPI_HOME=..., or run one process with -g N"},
    [KL_FOUND_UNFINISHED] = {"unfinished",
                             "look at the ranks that do not appear: they did not start, or cannot reach rank 0"},
    [KL_FOUND_SPLIT_HOST] = {"split_host",
                             "unset NCCL_P2P_DISABLE and NCCL_SHM_DISABLE; containers of one host need --ipc=host, or "
                             "the same NCCL_HOSTID"},
    [KL_FOUND_FALLBACK] =
        {"fallback",
         "kolo explain search --topo FILE says what stopped it; compare the machine's NVLinks with its topology file"},
    [KL_FOUND_MACHINE] = {"machine", NULL},
    [KL_FOUND_VIRTUAL_PCI] = {"virtual_pci",
                              "give the guest the host's PCI layout, or NCCL a topology file with the real links "
                              "(NCCL_TOPO_FILE)"},
    [KL_FOUND_MACHINES_DIFFER] = {"machines_differ",
                                  "kolo explain diff --topo A --topo B, with NCCL_TOPO_DUMP_FILE of each, "
                                  "names every difference"},
    [KL_FOUND_GRAPHS_DIFFER] = {"graphs_differ", "compare the PCI links and NICs of the two hosts"},
    [KL_FOUND_SETTINGS_DIFFER] = {"settings_differ",
                                  "give all ranks the same settings; also check /etc/nccl.conf and ~/.nccl.conf "
                                  "of each host"},
    [KL_FOUND_CHANNELS_DIFFER] = {"channels_differ", "ranks must agree: compare settings and releases of the hosts"},
    [KL_FOUND_NICS_DIFFER] = {"nics_differ",
                              "ibstat on both: a NIC may be down or missing; the host with fewer limits all"},
    [KL_FOUND_NETWORKS_DIFFER] = {"networks_differ",
                                  "make the same plugin and NICs available everywhere; NCCL_NET selects a network"},
    [KL_FOUND_MIXED_FABRIC] = {"mixed_fabric",
                               "select the NICs of one fabric with NCCL_IB_HCA: the two do not reach each other"},
    [KL_FOUND_SOCKET] =
        {"socket",
         "ibv_devinfo on the hosts; in containers pass /dev/infiniband; on clouds install the network plugin. "
         "Without such NICs: NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD help"},
    [KL_FOUND_GDR_FAR] =
        {"gdr_far",
         "NCCL_NET_GDR_LEVEL=SYS (or PHB) allows it at this distance: measure both; or use a NIC closer to the GPU"},
    [KL_FOUND_GDR_DRIVER] = {"gdr_driver",
                             "load nvidia_peermem (modprobe nvidia-peermem), or use DMA-BUF: open kernel modules and a "
                             "kernel from 5.12 on"},
    [KL_FOUND_GDR_OFF] =
        {"gdr_off", "look at lines with \"GPU Direct RDMA\" and \"DMA-BUF\" of a log with NCCL_DEBUG_SUBSYS=INIT,NET,"
                    "GRAPH; NCCL_NET_GDR_LEVEL=SYS shows whether distance is the reason"},
    [KL_FOUND_NET_INSIDE] = {"net_inside", "unset NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET_DISABLE_INTRA"},
    [KL_FOUND_SHM] =
        {"shm",
         "kolo explain pair A B --topo FILE says why; NCCL_P2P_LEVEL=SYS allows P2P at any distance: measure both"},
    [KL_FOUND_SLOW_NIC] = {"slow_nic",
                           "check that the right NIC is used (NCCL_IB_HCA, NCCL_SOCKET_IFNAME) and its link's speed"},
    [KL_FOUND_SETTING] = {"setting", "measure without it"},
    [KL_FOUND_SLOW_INIT] = {"slow_init", NULL},
    [KL_FOUND_NVLS_OFF] = {"nvls_off",
                           "check nvidia-fabricmanager, and that the driver offers multicast (530 or newer); virtual "
                           "machines need the whole board"},
    [KL_FOUND_PEER_CHANNELS] = {"peer_channels",
                                "where all-to-all or send and receive are slow, try NCCL_NCHANNELS_PER_NET_PEER=4"},
    [KL_FOUND_AFFINITY] =
        {"affinity", "compare with the CPUs that the job may use (taskset -p, cpuset of the container), and nvidia-smi "
                     "topo -m"},
    [KL_FOUND_NO_AFFINITY] = {"no_affinity", NULL},
};

static const char *const weights[KL_LOG_WEIGHTS] = {"stops", "follows", "costs", "remark"};

const char *kl_log_weight_name(enum kl_log_weight weight)
{
    return weight >= 0 && weight < KL_LOG_WEIGHTS ? weights[weight] : "";
}

const char *kl_log_finding_name(const struct kl_log_finding *f)
{
    return f->code == KL_FOUND_CAUSE ? kl_cause_facts(f->cause)->name : codes[f->code].name;
}

static const char *slow_phase_remedy(const char *phase)
{
    if (!strcmp(phase, "kernels"))
        return "loading kernels takes that long: CUDA_MODULE_LOADING=LAZY, a newer release, and the library on a local "
               "disk help";
    if (!strcmp(phase, "bootstrap"))
        return "ranks come late, or a wrong interface is tried first: see which rank starts last, and "
               "NCCL_SOCKET_IFNAME";
    if (!strcmp(phase, "topo"))
        return "detecting the machine takes that long: a topology file (NCCL_TOPO_FILE) saves it";
    return NULL;
}

const char *kl_log_finding_remedy(const struct kl_log_finding *f)
{
    if (f->code == KL_FOUND_CAUSE) return kl_cause_facts(f->cause)->remedy;
    if (f->code == KL_FOUND_MACHINE) return kl_anomaly_remedy(f->fault);
    if (f->code == KL_FOUND_AFFINITY && f->m)
        return "2.29.2 reads masks wrongly where threads share a process: use another release, or "
               "NCCL_IGNORE_CPU_AFFINITY=1";
    if (f->code == KL_FOUND_VERSIONS_DIFFER)
        return f->a ? "if it holds several jobs, give each a log of its own; --nccl says which release to plan by"
                    : "make every host load the same libnccl.so.2";
    if (f->code == KL_FOUND_SLOW_INIT) return slow_phase_remedy(f->text);
    return codes[f->code].remedy;
}

static const char *pattern_name(int pattern)
{
    return pattern == 4 ? "rings" : pattern == 5 ? "NVLS" : pattern == 6 ? "CollNet" : "trees";
}

static void differ_text(const struct kl_log_finding *f, struct kl_text *t)
{
    if (f->code == KL_FOUND_VERSIONS_DIFFER)
        kl_text_add(t, f->a ? "the log names two releases, NCCL %s and %s" : "ranks run NCCL %s and %s", f->text,
                    f->other);
    else if (f->code == KL_FOUND_MACHINES_DIFFER)
        kl_text_add(t, "%s and %s have different hardware", f->text, f->other);
    else if (f->code == KL_FOUND_GRAPHS_DIFFER)
        kl_text_add(t, "%s has %d %s of %g GB/s, %s has %d of %g GB/s: the slower host limits all", f->text, f->n,
                    pattern_name(f->a), f->x, f->other, f->m, f->y);
    else if (f->code == KL_FOUND_SETTINGS_DIFFER)
        kl_text_add(t, "%s differs between ranks: %s", f->text, f->other);
    else if (f->code == KL_FOUND_CHANNELS_DIFFER)
        kl_text_add(t, "%d channels on %s, but %d on %s", f->n, f->text, f->m, f->other);
    else if (f->code == KL_FOUND_NICS_DIFFER)
        kl_text_add(t, "%d NIC%s on %s, but %d on %s", f->n, kl_plural(f->n), f->text, f->m, f->other);
    else if (f->code == KL_FOUND_NETWORKS_DIFFER)
        kl_text_add(t, "ranks use different networks: %s and %s", f->text, f->other);
    else
        kl_text_add(t, "InfiniBand (%s) and RoCE (%s) NICs are used together", f->text, f->other);
}

static void network_text(const struct kl_log_finding *f, struct kl_text *t)
{
    if (f->code == KL_FOUND_SOCKET)
        kl_text_add(t, "hosts talk over TCP sockets%s", f->a ? ": no InfiniBand or RoCE device was found" : "");
    else if (f->code == KL_FOUND_GDR_FAR)
        kl_text_add(
            t,
            "GPUDirect RDMA is off: GPU %s is too far from its NIC (distance %d, allowed %d), so data go through "
            "host memory",
            f->text, f->a, f->n);
    else if (f->code == KL_FOUND_GDR_DRIVER)
        kl_text_add(
            t, "GPUDirect RDMA is off: the driver of %s cannot access GPU memory, so data pass through host memory",
            *f->text ? f->text : "the NIC");
    else if (f->code == KL_FOUND_GDR_OFF)
        kl_text_add(t, "GPUDirect RDMA is off on %d connection%s, and the log does not say why", f->n, kl_plural(f->n));
    else if (f->code == KL_FOUND_NET_INSIDE)
        kl_text_add(t, "%d connection%s within a host go%s through the network", f->n, kl_plural(f->n),
                    f->n == 1 ? "es" : "");
    else if (f->code == KL_FOUND_SHM)
        kl_text_add(t, "%d connection%s within a host go%s through shared memory instead of P2P%s", f->n,
                    kl_plural(f->n), f->n == 1 ? "es" : "",
                    f->a == 0 ? ": not all GPUs of the host can access each other's memory" : "");
    else if (f->code == KL_FOUND_SLOW_NIC)
        kl_text_add(t, "NET/%s has a bandwidth of only %g GB/s", f->text, f->x);
    else
        kl_text_add(t, "messages to a rank of another host use %d of %d channels", f->n, f->m);
}

static void job_text(const struct kl_log_finding *f, struct kl_text *t)
{
    if (f->code == KL_FOUND_ALONE)
        kl_text_add(t,
                    "%d processes run, but each has a communicator of its own with one rank: the program was built "
                    "without MPI, or does not use it",
                    f->n);
    else if (f->code == KL_FOUND_UNFINISHED) {
        kl_text_add(t, "%d rank%s started init, and none finished it in this log", f->n, kl_plural(f->n));
        if (f->m > 0)
            kl_text_add(t, "; %d rank%s not appear in it, the first is rank %d", f->m, f->m == 1 ? " does" : "s do",
                        f->a);
    } else if (f->code == KL_FOUND_SPLIT_HOST)
        kl_text_add(t, "ranks of one host count as %d nodes and talk through the network%s", f->n,
                    f->a ? ", because P2P and shared memory are both switched off" : "");
    else if (f->code == KL_FOUND_SLOW_INIT)
        kl_text_add(t, "init took %.1f s, %.1f of them in \"%s\"", f->x, f->y, f->text);
    else
        kl_text_add(t, "%s=%s: %s", f->text, f->other, kl_log_setting_text(f->a));
}

static void machine_text(const struct kl_log_finding *f, struct kl_text *t)
{
    if (f->code == KL_FOUND_MACHINE)
        kl_text_add(t, "%s", f->text);
    else if (f->code == KL_FOUND_FALLBACK)
        kl_text_add(t, "the search found no %s: the devices' order at 0.1 GB/s is used", pattern_name(f->a));
    else if (f->code == KL_FOUND_VIRTUAL_PCI)
        kl_text_add(t,
                    "%d PCI link%s above GPUs carr%s %g GB/s: such links are made up by a virtual machine, and hide "
                    "the real ones",
                    f->n, kl_plural(f->n), f->n == 1 ? "ies" : "y", f->x);
    else if (f->code == KL_FOUND_NVLS_OFF)
        kl_text_add(t, "the NVSwitches offer no multicast, so NVLS is not used");
    else if (f->code == KL_FOUND_AFFINITY)
        kl_text_add(t, "the CPUs near rank %d's GPU (%s) are only a part of those near rank %d's (%s)", f->a, f->text,
                    f->n, f->other);
    else
        kl_text_add(t, "the machine does not report which CPUs are near rank %d's GPU", f->a);
}

void kl_log_finding_text(const struct kl_log_finding *f, struct kl_text *t)
{
    if (f->code == KL_FOUND_CAUSE) {
        const struct kl_cause_facts *c = kl_cause_facts(f->cause);

        kl_text_add(t, "%s", f->cause == KL_CAUSE_NONE ? f->text : c->text);
        return;
    }
    if (f->code == KL_FOUND_VERSIONS_DIFFER ||
        (f->code >= KL_FOUND_MACHINES_DIFFER && f->code <= KL_FOUND_MIXED_FABRIC))
        differ_text(f, t);
    else if ((f->code >= KL_FOUND_SOCKET && f->code <= KL_FOUND_SLOW_NIC) || f->code == KL_FOUND_PEER_CHANNELS)
        network_text(f, t);
    else if (f->code == KL_FOUND_ALONE || f->code == KL_FOUND_UNFINISHED || f->code == KL_FOUND_SPLIT_HOST ||
             f->code == KL_FOUND_SETTING || f->code == KL_FOUND_SLOW_INIT)
        job_text(f, t);
    else
        machine_text(f, t);
}

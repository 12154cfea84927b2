/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/findings.h"
#include "logs/remedy.h"
#include "logs/settings.h"
#include "topo/anomaly.h"

#include <string.h>

static const struct {
    const char *name, *remedy;
} codes[KL_LOG_CODES] = {
    [KL_FOUND_CAUSE] = {"cause", NULL},
    [KL_FOUND_VERSIONS_DIFFER] = {"versions_differ", NULL},
    [KL_FOUND_ALONE] = {"alone", "nccl-tests: rebuild with MPI=1 MPI_HOME=..., or run one process with -g N"},
    [KL_FOUND_CALLS_DIFFER] = {"calls_differ",
                               "compare the program's path on these ranks: a branch, an exception, or an uneven number "
                               "of batches"},
    [KL_FOUND_CALLS_BEHIND] = {"calls_behind", "look at that rank's stack (py-spy dump), and at its log above"},
    [KL_FOUND_UNFINISHED] = {"unfinished", NULL},
    [KL_FOUND_SPLIT_HOST] = {"split_host", "unset NCCL_P2P_DISABLE and NCCL_SHM_DISABLE"},
    [KL_FOUND_DIVIDED_HOST] =
        {"divided_host", "give all ranks of a host the same NCCL_HOSTID, and containers of a host the same hostname, "
                         "boot id and /dev/shm; unset an NCCL_HOSTID that differs by rail or by task"},
    [KL_FOUND_CONTAINERS] = {"containers", "if they are containers of one host: give them the same NCCL_HOSTID, shared "
                                           "IPC and PID namespaces, a shared /dev/shm "
                                           "and all GPUs of the host, so that P2P can be used"},
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
    [KL_FOUND_GPU_PATH] = {"gpu_path", NULL},
    [KL_FOUND_GPU_P2P_OFF] = {"gpu_p2p_off", "unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL, and measure both"},
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

static const char *unfinished_remedy(const struct kl_log_finding *f)
{
    if (f->m > 0 && f->a <= KL_LOG_BEGUN)
        return "look at the ranks that do not appear: they did not start, or cannot reach rank 0";
    if (f->a <= KL_LOG_BEGUN)
        return "check that all ranks reach rank 0: firewalls and NCCL_SOCKET_IFNAME; look at the stack of the slowest "
               "rank";
    if (f->a < KL_LOG_CONNECTING)
        return "look at the stack of that rank (gdb, py-spy dump --native); NCCL_DEBUG_SUBSYS=INIT,GRAPH,BOOTSTRAP "
               "says more";
    return "see whether the NICs of the two sides reach each other (ib_write_bw between them; NCCL_IB_HCA, "
           "NCCL_IB_GID_INDEX, NCCL_SOCKET_IFNAME), and whether a firewall lets only some ports through";
}

static const char *gpu_path_remedy(const char *why)
{
    if (strstr(why, "no access"))
        return "consumer GPUs and instances of MIG have no P2P; for others nvidia-smi topo -p2p rw says whether the "
               "driver allows it";
    if (strstr(why, "writes get lost"))
        return "turn off the host's IOMMU (iommu=pt on the kernel's command line), and ACS of its PCI switches; "
               "NCCL_P2P_DISABLE=1 saves the test";
    return "look for errors of the GPUs in the kernel's log (dmesg), and run nvidia-smi topo -p2p rw; "
           "NCCL_P2P_DISABLE=1 avoids the path";
}

static const char *remedy_of(const struct kl_log_finding *f)
{
    if (f->code == KL_FOUND_GPU_PATH) return gpu_path_remedy(f->text);
    if (f->code == KL_FOUND_CAUSE) return kl_cause_facts(f->cause)->remedy;
    if (f->code == KL_FOUND_MACHINE) return kl_anomaly_remedy(f->fault);
    if (f->code == KL_FOUND_UNFINISHED) return unfinished_remedy(f);
    if (f->code == KL_FOUND_AFFINITY && f->m)
        return "2.29.2 reads masks wrongly where threads share a process: use another release, or "
               "NCCL_IGNORE_CPU_AFFINITY=1";
    if (f->code == KL_FOUND_VERSIONS_DIFFER)
        return f->a ? "if it holds several jobs, give each a log of its own; --nccl says which release to plan by"
                    : "make every host load the same libnccl.so.2";
    if (f->code == KL_FOUND_SPLIT_HOST && !f->a)
        return "containers of one host need --ipc=host, or the same NCCL_HOSTID";
    if (f->code == KL_FOUND_SLOW_INIT) return slow_phase_remedy(f->text);
    return codes[f->code].remedy;
}

void kl_log_finding_remedy(const struct kl_log *log, const struct kl_log_finding *f, struct kl_text *t)
{
    kl_remedy_add(log, remedy_of(f), t);
}

const char *kl_log_step_text(enum kl_log_step step)
{
    switch (step) {
    case KL_LOG_MET:
        return "all ranks had met; rings and trees were not made";
    case KL_LOG_PLANNED:
        return "rings and trees were made; nothing was connected";
    case KL_LOG_CONNECTING:
        return "connecting, where the log ends";
    case KL_LOG_CONNECTED:
        return "all rings were connected";
    default:
        return "init began; it waited for the other ranks";
    }
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
    else if (f->code == KL_FOUND_UNFINISHED || f->code == KL_FOUND_CALLS_DIFFER || f->code == KL_FOUND_CALLS_BEHIND)
        kl_text_add(t, "%s", f->text);
    else if (f->code == KL_FOUND_DIVIDED_HOST)
        kl_text_add(
            t,
            "%g ranks count as %d nodes: %s has %d of them, but each node has %d, as if host ids differed inside of a "
            "host",
            f->x, f->a, f->text, f->n, f->m);
    else if (f->code == KL_FOUND_CONTAINERS)
        kl_text_add(t,
                    "%s: each of %d ranks is a node with one GPU, and their GPUs have different numbers on apparently "
                    "%d host%s: containers of one host that NCCL takes for hosts; NCCL_HOSTID and shared namespaces "
                    "would let them use P2P",
                    f->a ? "everything goes over TCP sockets" : "everything goes through the network", f->n, f->m,
                    kl_plural(f->m));
    else if (f->code == KL_FOUND_SPLIT_HOST)
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
    else if (f->code == KL_FOUND_GPU_PATH)
        kl_text_add(t,
                    "P2P from the GPU of rank %d to the GPU of rank %d %s; all data of the communicator go through "
                    "host memory",
                    f->n, f->m, f->text);
    else if (f->code == KL_FOUND_GPU_P2P_OFF)
        kl_text_add(t,
                    "P2P between the GPUs of ranks %d and %d is off: %s; all data of the communicator go through "
                    "host memory",
                    f->n, f->m, f->text);
    else if (f->code == KL_FOUND_AFFINITY)
        kl_text_add(t, "the CPUs near rank %d's GPU (%s) are only a part of those near rank %d's (%s)", f->a, f->text,
                    f->n, f->other);
    else
        kl_text_add(t, "the machine does not report which CPUs are near rank %d's GPU", f->a);
}

/* A message that the table does not know, or knows only in general, is shown with its place. */
static void message_text(const struct kl_log_finding *f, struct kl_text *t)
{
    if (f->cause != KL_CAUSE_NONE) kl_text_add(t, "%s: ", kl_cause_facts(f->cause)->text);
    if (f->cause == KL_CAUSE_NONE && f->weight == KL_LOG_STOPS) kl_text_add(t, "a call failed: ");
    kl_text_add(t, "%s", f->text);
    if (f->other && *f->other) kl_text_add(t, " (%s)", f->other);
}

static void cause_text(const struct kl_log_finding *f, struct kl_text *t)
{
    if (f->cause == KL_CAUSE_NONE || f->cause == KL_CAUSE_CUDA || f->cause == KL_CAUSE_USAGE ||
        f->cause == KL_CAUSE_FABRIC || f->cause == KL_CAUSE_FAILED)
        message_text(f, t);
    else
        kl_text_add(t, "%s", kl_cause_facts(f->cause)->text);
}

void kl_log_finding_text(const struct kl_log_finding *f, struct kl_text *t)
{
    if (f->code == KL_FOUND_CAUSE)
        cause_text(f, t);
    else if (f->code == KL_FOUND_VERSIONS_DIFFER ||
             (f->code >= KL_FOUND_MACHINES_DIFFER && f->code <= KL_FOUND_MIXED_FABRIC))
        differ_text(f, t);
    else if ((f->code >= KL_FOUND_SOCKET && f->code <= KL_FOUND_SLOW_NIC) || f->code == KL_FOUND_PEER_CHANNELS)
        network_text(f, t);
    else if (f->code <= KL_FOUND_CONTAINERS || f->code == KL_FOUND_SETTING || f->code == KL_FOUND_SLOW_INIT)
        job_text(f, t);
    else
        machine_text(f, t);
}

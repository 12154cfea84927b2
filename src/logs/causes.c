/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/causes.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct kl_cause_facts facts[KL_CAUSES] = {
    [KL_CAUSE_NONE] = {"unknown", KL_LOG_COSTS, "a warning that is not known here", NULL},
    [KL_CAUSE_VERSIONS] =
        {"versions", KL_LOG_STOPS, "ranks run different releases of NCCL",
         "make every host load the same libnccl.so.2: look at LD_LIBRARY_PATH, the containers' images, and "
         "NCCL_DEBUG=VERSION on each"},
    [KL_CAUSE_DRIVER_OLD] = {"driver_old", KL_LOG_STOPS, "the driver is older than the CUDA that NCCL was built with",
                             "update the driver, or use an NCCL for the driver's CUDA (nvidia-smi names it)"},
    [KL_CAUSE_NO_KERNEL] =
        {"no_kernel", KL_LOG_STOPS,
         "the library contains no code for this GPU: it was built for other architectures, or with a CUDA older "
         "than the GPU",
         "rebuild NCCL with this GPU's architecture in NVCC_GENCODE (cuobjdump --list-elf libnccl.so.2 shows "
         "which it has), or install the packaged library"},
    [KL_CAUSE_FABRIC_MANAGER] =
        {"fabric_manager", KL_LOG_STOPS,
         "the NVSwitch fabric is not set up: CUDA says that the system is not yet initialized",
         "start nvidia-fabricmanager, of the driver's exact version, and see nvidia-smi -q (Fabric State)"},
    [KL_CAUSE_GPU_BROKEN] = {"gpu_broken", KL_LOG_STOPS, "a GPU or its NVLinks report a hardware error",
                             "look for Xid in the kernel's log and at nvidia-smi -q -d ECC; reset or replace the GPU"},
    [KL_CAUSE_XID] = {"xid", KL_LOG_STOPS, "the driver reports an error of a GPU",
                      "look the number up in NVIDIA's list of Xid errors, and what the kernel's log says around it"},
    [KL_CAUSE_PROGRAM_FAULT] = {"program_fault", KL_LOG_STOPS,
                                "a kernel failed, usually one of the program: NCCL only meets the error that it left",
                                "run with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer to find the kernel that fails"},
    [KL_CAUSE_DUPLICATE_GPU] = {"duplicate_gpu", KL_LOG_STOPS, "two ranks use the same GPU",
                                "call cudaSetDevice(local rank) before anything else, and check CUDA_VISIBLE_DEVICES"},
    [KL_CAUSE_RANK_COUNT] = {"rank_count", KL_LOG_STOPS, "processes disagree on the number of ranks",
                             "check the world size that each process was started with"},
    [KL_CAUSE_RANK_TWICE] = {"rank_twice", KL_LOG_STOPS, "two processes claim the same rank",
                             "check the rank that each process was started with"},
    [KL_CAUSE_DEVICE_NUMBER] = {"device_number", KL_LOG_STOPS, "a process asks for a GPU that it does not see",
                                "compare the number of processes per host with nvidia-smi -L and CUDA_VISIBLE_DEVICES"},
    [KL_CAUSE_NVLS_SLOTS] =
        {"nvls_slots", KL_LOG_STOPS,
         "the NVSwitches have no multicast group left: there are 128, and every communicator with NVLS takes some",
         "set NCCL_NVLS_ENABLE=0, or make fewer communicators at a time, or switch NVLS off for the small ones"},
    [KL_CAUSE_NVLS_BIND] = {"nvls_bind", KL_LOG_STOPS,
                            "memory could not be bound to a multicast group of the NVSwitches",
                            "check nvidia-fabricmanager and its log; NCCL_NVLS_ENABLE=0 turns NVLS off"},
    [KL_CAUSE_XML_NODES] =
        {"xml_nodes", KL_LOG_STOPS,
         "the machine's description has more elements than this release can hold (256): many NICs, each "
         "described once per rank",
         "use a release after 2.30, or fewer NICs (NCCL_IB_HCA), or a topology file without the rest"},
    [KL_CAUSE_GRAPH_FILE] = {"graph_file", KL_LOG_STOPS,
                             "the graph file names a device that is not in the job: it was made for other GPUs",
                             "unset NCCL_GRAPH_FILE; it may stand in /etc/nccl.conf or ~/.nccl.conf"},
    [KL_CAUSE_TOPO_FILE] =
        {"topo_file", KL_LOG_STOPS, "the topology file is malformed",
         "correct or unset NCCL_TOPO_FILE (also in /etc/nccl.conf); kolo topo --topo FILE checks it"},
    [KL_CAUSE_SHM_SMALL] =
        {"shm_small", KL_LOG_STOPS, "there is no room for shared memory, usually a container's small /dev/shm",
         "start the container with --shm-size=1g or --ipc=host; NCCL_SHM_DISABLE=1 shows whether that is the cause"},
    [KL_CAUSE_GPU_MEMORY] = {"gpu_memory", KL_LOG_STOPS, "GPU memory is used up",
                             "leave NCCL a few hundred MB for each communicator, or use fewer communicators or "
                             "channels (NCCL_MAX_CTAS)"},
    [KL_CAUSE_MEMLOCK] =
        {"memlock", KL_LOG_STOPS, "memory could not be locked for the NIC",
         "raise the limit of locked memory: ulimit -l unlimited, also for the launcher's daemon and containers"},
    [KL_CAUSE_GDR_REGISTER] = {"gdr_register", KL_LOG_STOPS, "the NIC could not register GPU memory",
                               "load nvidia_peermem, or use DMA-BUF with a driver and kernel that have it; "
                               "NCCL_NET_GDR_LEVEL=LOC shows whether that is the cause"},
    [KL_CAUSE_OPEN_FILES] = {"open_files", KL_LOG_STOPS, "a process has too many open files", "raise ulimit -n"},
    [KL_CAUSE_THREADS] = {"threads", KL_LOG_STOPS, "a process may start no more threads",
                          "raise ulimit -u, or the pids limit of the container"},
    [KL_CAUSE_NO_INTERFACE] = {"no_interface", KL_LOG_STOPS, "no network interface matches",
                               "check NCCL_SOCKET_IFNAME and ip addr: the interface must be up and have an address"},
    [KL_CAUSE_NO_NETWORK] = {"no_network", KL_LOG_STOPS, "the requested network is not available",
                             "check NCCL_NET and the plugin's library; unset NCCL_NET to see which are"},
    [KL_CAUSE_GID_EMPTY] =
        {"gid_empty", KL_LOG_STOPS,
         "the RoCE port has no address at the GID index in use, which may have moved when a link or an address changed",
         "unset NCCL_IB_GID_INDEX, so that NCCL looks for it, or give the port its address again (show_gids)"},
    [KL_CAUSE_IB_NO_ROUTE] = {"ib_no_route", KL_LOG_STOPS, "the NICs cannot reach each other",
                              "check rails and subnets: ibping or ib_write_bw between the two; NCCL_IB_GID_INDEX, "
                              "NCCL_IB_HCA and NCCL_CROSS_NIC=0 narrow it down"},
    [KL_CAUSE_IB_RETRY] =
        {"ib_retry", KL_LOG_STOPS, "a message was sent again until the limit, without an answer (retries exceeded)",
         "look at the link and the switch (errors, pauses, PFC); NCCL_IB_TIMEOUT=22 gives it more time"},
    [KL_CAUSE_IB_ACCESS] =
        {"ib_access", KL_LOG_STOPS, "a NIC was denied access to memory",
         "check ACS and the IOMMU, and nvidia_peermem; NCCL_NET_GDR_LEVEL=LOC shows whether that is the cause"},
    [KL_CAUSE_IB_PORT] = {"ib_port", KL_LOG_STOPS, "a port went down, or its NIC failed",
                          "look at the cable and the switch port; ibstat, dmesg"},
    [KL_CAUSE_UNREACHABLE] =
        {"unreachable", KL_LOG_STOPS, "a host cannot be reached at the address it announced",
         "check that the interface is the right one (NCCL_SOCKET_IFNAME), and firewalls between the hosts; "
         "a rank that has exited refuses connections, too"},
    [KL_CAUSE_IPC] = {"ipc", KL_LOG_STOPS, "GPU memory could not be shared between processes",
                      "containers need the same IPC and PID namespaces (--ipc=host); NCCL_P2P_DISABLE=1 or "
                      "NCCL_CUMEM_ENABLE=0 shows whether that is the cause"},
    [KL_CAUSE_UNGROUPED] =
        {"ungrouped", KL_LOG_STOPS,
         "a rank connects to a peer that is not ready for it: typically sends and receives whose order deadlocks",
         "put the sends and receives between ncclGroupStart and ncclGroupEnd, or call them in matching order"},
    [KL_CAUSE_SIZES] =
        {"sizes", KL_LOG_STOPS, "ranks exchange messages of different sizes",
         "check that counts and types agree on all ranks, and NCCL_* settings such as NCCL_ALGO, NCCL_PROTO, "
         "NCCL_BUFFSIZE"},
    [KL_CAUSE_NO_ALGORITHM] = {"no_algorithm", KL_LOG_STOPS,
                               "NCCL_ALGO and NCCL_PROTO leave no algorithm for an operation",
                               "unset them, or name one that the operation has: kolo explain COLLECTIVE shows which"},
    [KL_CAUSE_RINGS] = {"rings", KL_LOG_STOPS,
                        "the ranks' rings do not fit together: they see different machines or settings",
                        "compare NCCL_* settings and topology files of all hosts"},
    [KL_CAUSE_NVML] =
        {"nvml", KL_LOG_STOPS, "NVML does not work",
         "the driver and libnvidia-ml must have the same version: reload the driver or reboot, rebuild the container"},
    [KL_CAUSE_TIMEOUT] = {"timeout", KL_LOG_FOLLOWS,
                          "an operation timed out: some rank did not join it, or had failed before",
                          "look for the rank without this line, or the first one that failed"},
    [KL_CAUSE_PEER_GONE] = {"peer_gone", KL_LOG_FOLLOWS,
                            "another rank closed its connection: it had exited or failed before",
                            "look at that rank's log: its first warning is the cause"},
    [KL_CAUSE_KILLED] = {"killed", KL_LOG_FOLLOWS, "a process was killed: by a signal, or by the scheduler",
                         "look at what it printed last; signal 9 is often the kernel's out-of-memory killer (dmesg)"},
    [KL_CAUSE_ABORTED] = {"aborted", KL_LOG_FOLLOWS, "a communicator was aborted", NULL},
    [KL_CAUSE_XID_CLEANUP] = {"xid_cleanup", KL_LOG_FOLLOWS,
                              "the driver cleaned up after a process that ended or failed (Xid 45)",
                              "look for the error before it: another Xid, or the first warning of that process"},
    [KL_CAUSE_TOPO_FILE_GONE] =
        {"topo_file_gone", KL_LOG_COSTS,
         "the topology file cannot be opened: NCCL does without, and plans for the machine as it sees it",
         "correct NCCL_TOPO_FILE (also in /etc/nccl.conf), and mount the file into containers; or unset it"},
    [KL_CAUSE_FALLBACK] =
        {"fallback", KL_LOG_COSTS,
         "the search found no rings or trees, and NCCL fell back to the devices' order at 0.1 GB/s",
         "kolo explain search --topo FILE says what stopped it; often a GPU without NVLink, or a wrong "
         "topology file"},
    [KL_CAUSE_P2P_OFF] =
        {"p2p_off", KL_LOG_COSTS, "GPUs joined by NVLink are not allowed to access each other's memory",
         "check that the driver allows P2P: nvidia-smi topo -p2p r; IOMMU and confidential computing forbid it"},
    [KL_CAUSE_P2P_FAILED] = {"p2p_failed", KL_LOG_COSTS, "GPUs could not access each other's memory",
                             "check ACS and the IOMMU; NCCL_P2P_DISABLE=1 avoids it"},
    [KL_CAUSE_PLUGIN_FAILED] = {"plugin_failed", KL_LOG_COSTS, "a network plugin could not be used",
                                "look at its lines above, and at its dependencies with ldd"},
    [KL_CAUSE_PLUGIN_NO_GDR] = {"plugin_no_gdr", KL_LOG_COSTS,
                                "the network plugin works without GPUDirect RDMA: data pass through host memory, with "
                                "the Simple protocol only",
                                "use an instance type, a driver and a plugin that offer GPUDirect RDMA"},
    [KL_CAUSE_NO_IB] =
        {"no_ib", KL_LOG_REMARK, "no InfiniBand or RoCE device was found",
         "ibv_devinfo shows what there is; containers need /dev/infiniband, and NCCL_IB_HCA may exclude all"},
    [KL_CAUSE_NO_VERBS] = {"no_verbs", KL_LOG_REMARK, "libibverbs could not be loaded",
                           "install rdma-core (libibverbs.so.1)"},
    [KL_CAUSE_IOMMU] = {"iommu", KL_LOG_COSTS, "the IOMMU slows down transfers between devices", "boot with iommu=pt"},
    [KL_CAUSE_NUMA_BALANCING] = {"numa_balancing", KL_LOG_COSTS,
                                 "the kernel migrates memory between NUMA nodes (automatic NUMA balancing)",
                                 "echo 0 > /proc/sys/kernel/numa_balancing"},
    [KL_CAUSE_IB_EVENT] = {"ib_event", KL_LOG_REMARK, "a NIC reported that its addresses or its subnet manager changed",
                           "harmless by itself; if connections fail afterwards, look at the port and at show_gids"},
    [KL_CAUSE_RETRY] = {"retry", KL_LOG_REMARK, "connections were retried", NULL},
};

const struct kl_cause_facts *kl_cause_facts(enum kl_log_cause cause)
{
    return &facts[cause >= 0 && cause < KL_CAUSES ? cause : KL_CAUSE_NONE];
}

/* All words must be in the line, anywhere; what stands first counts. */
static const struct {
    enum kl_log_cause cause;
    const char *word[3];
} table[] = {
    {KL_CAUSE_VERSIONS, {"ismatched NCCL version"}},
    {KL_CAUSE_VERSIONS, {"NCCL version mismatch"}},
    {KL_CAUSE_VERSIONS, {"differs from rank", "NCCL version"}},
    {KL_CAUSE_DRIVER_OLD, {"driver version is insufficient"}},
    {KL_CAUSE_DRIVER_OLD, {"PTX was compiled with an unsupported toolchain"}},
    {KL_CAUSE_DRIVER_OLD, {"forward compatibility was attempted"}},
    {KL_CAUSE_NO_KERNEL, {"named symbol not found"}},
    {KL_CAUSE_NO_KERNEL, {"no kernel image is available"}},
    {KL_CAUSE_NO_KERNEL, {"invalid device function"}},
    {KL_CAUSE_NO_KERNEL, {"device kernel image is invalid"}},
    {KL_CAUSE_FABRIC_MANAGER, {"system not yet initialized"}},
    {KL_CAUSE_FABRIC_MANAGER, {"abric", "not initialized"}},
    {KL_CAUSE_GPU_BROKEN, {"uncorrectable"}},
    {KL_CAUSE_GPU_BROKEN, {"GPU has fallen off the bus"}},
    {KL_CAUSE_PROGRAM_FAULT, {"hardware stack error"}},
    {KL_CAUSE_PROGRAM_FAULT, {"illegal instruction was encountered"}},
    {KL_CAUSE_PROGRAM_FAULT, {"invalid program counter"}},
    {KL_CAUSE_PROGRAM_FAULT, {"illegal memory access"}},
    {KL_CAUSE_PROGRAM_FAULT, {"unspecified launch failure"}},
    {KL_CAUSE_PROGRAM_FAULT, {"misaligned address"}},
    {KL_CAUSE_PROGRAM_FAULT, {"device-side assert"}},
    {KL_CAUSE_DUPLICATE_GPU, {"Duplicate GPU detected"}},
    {KL_CAUSE_RANK_COUNT, {"mismatch in rank count"}},
    {KL_CAUSE_RANK_TWICE, {"has already checked in"}},
    {KL_CAUSE_RANK_TWICE, {"Invalid rank requested"}},
    {KL_CAUSE_DEVICE_NUMBER, {"invalid device ordinal"}},
    {KL_CAUSE_DEVICE_NUMBER, {"no CUDA-capable device"}},
    {KL_CAUSE_NVLS_SLOTS, {"NVLS", "ulticast", "out of memory"}},
    {KL_CAUSE_NVLS_SLOTS, {"NVSwitch multicast resources"}},
    {KL_CAUSE_NVLS_SLOTS, {"resources to the multicast team"}},
    {KL_CAUSE_NVLS_BIND, {"Failed to bind NVLink SHARP"}},
    {KL_CAUSE_NVLS_BIND, {"Failed to create", "ulticast"}},
    {KL_CAUSE_XML_NODES, {"too many XML nodes"}},
    {KL_CAUSE_GRAPH_FILE, {"XML Import Channel"}},
    {KL_CAUSE_GRAPH_FILE, {"Could not open XML graph file"}},
    {KL_CAUSE_TOPO_FILE_GONE, {"Could not open XML topology file"}},
    {KL_CAUSE_TOPO_FILE, {"XML", "arse error"}},
    {KL_CAUSE_TOPO_FILE, {"Attribute", " of node ", "not found"}},
    {KL_CAUSE_SHM_SMALL, {"/dev/shm", "No space left"}},
    {KL_CAUSE_SHM_SMALL, {"failed to extend /dev/shm"}},
    {KL_CAUSE_SHM_SMALL, {"creating shared memory segment"}},
    {KL_CAUSE_SHM_SMALL, {"posix_fallocate", "No space left"}},
    {KL_CAUSE_SHM_SMALL, {"open shared memory segment"}},
    {KL_CAUSE_GID_EMPTY, {"ibv_modify_qp", "local GID ::,"}},
    {KL_CAUSE_GID_EMPTY, {"ibv_modify_qp", "No data available"}},
    {KL_CAUSE_IB_NO_ROUTE, {"ibv_modify_qp", "timed out"}},
    {KL_CAUSE_IB_NO_ROUTE, {"ibv_modify_qp", "unreachable"}},
    {KL_CAUSE_IB_NO_ROUTE, {"ibv_modify_qp failed"}},
    {KL_CAUSE_IB_NO_ROUTE, {"ibv_create_ah failed"}},
    {KL_CAUSE_MEMLOCK, {"ibv_", "failed", "Cannot allocate memory"}},
    {KL_CAUSE_GDR_REGISTER, {"ibv_reg_", "failed"}},
    {KL_CAUSE_GDR_REGISTER, {"Unable to register memory", "RC: -14"}},
    {KL_CAUSE_IB_RETRY, {"ompletion", "status=12"}},
    {KL_CAUSE_IB_RETRY, {"ompletion", "status=13"}},
    {KL_CAUSE_IB_RETRY, {"ompletion with error 12"}},
    {KL_CAUSE_IB_RETRY, {"ompletion with error 13"}},
    {KL_CAUSE_IB_ACCESS, {"ompletion", "status=10"}},
    {KL_CAUSE_IB_ACCESS, {"ompletion", "status=11"}},
    {KL_CAUSE_IB_ACCESS, {"ompletion", "status=9"}},
    {KL_CAUSE_IB_ACCESS, {"ompletion", "status=4"}},
    {KL_CAUSE_IB_ACCESS, {"ompletion with error 10"}},
    {KL_CAUSE_IB_ACCESS, {"ompletion with error 4"}},
    {KL_CAUSE_PEER_GONE, {"ompletion", "status=5"}},
    {KL_CAUSE_PEER_GONE, {"ompletion with error 5"}},
    {KL_CAUSE_IB_PORT, {"async", "port error"}},
    {KL_CAUSE_IB_PORT, {"async", "device fatal"}},
    {KL_CAUSE_IB_PORT, {"NET/IB", "link down"}},
    {KL_CAUSE_IB_EVENT, {"async event", "GID table change"}},
    {KL_CAUSE_IB_EVENT, {"async event", "client reregistration"}},
    {KL_CAUSE_IB_EVENT, {"async event", "lid change"}},
    {KL_CAUSE_IB_EVENT, {"async event", "SM change"}},
    {KL_CAUSE_OPEN_FILES, {"Too many open files"}},
    {KL_CAUSE_THREADS, {"pthread_create", "failed"}},
    {KL_CAUSE_THREADS, {"Resource temporarily unavailable", "thread"}},
    {KL_CAUSE_NO_INTERFACE, {"no socket interface found"}},
    {KL_CAUSE_NO_INTERFACE, {"No socket interface found"}},
    {KL_CAUSE_NO_INTERFACE, {"no interface found"}},
    {KL_CAUSE_NO_INTERFACE, {"No interface found"}},
    {KL_CAUSE_NO_NETWORK, {"Error: network", "not found"}},
    {KL_CAUSE_NO_NETWORK, {"Failed to initialize any NET plugin"}},
    {KL_CAUSE_UNGROUPED, {"family 1 is neither"}},
    {KL_CAUSE_UNGROUPED, {"family 0 is neither"}},
    {KL_CAUSE_RETRY, {"socketPollConnect", "retrying"}},
    {KL_CAUSE_UNREACHABLE, {"socketPollConnect", "onnection refused"}},
    {KL_CAUSE_UNREACHABLE, {"socketPollConnect", "timed out"}},
    {KL_CAUSE_UNREACHABLE, {"socketPollConnect", "No route to host"}},
    {KL_CAUSE_UNREACHABLE, {"onnect", "fail", "onnection refused"}},
    {KL_CAUSE_UNREACHABLE, {"onnect", "fail", "timed out"}},
    {KL_CAUSE_UNREACHABLE, {"onnect", "fail", "No route to host"}},
    {KL_CAUSE_UNREACHABLE, {"onnect", "fail", "etwork is unreachable"}},
    {KL_CAUSE_UNREACHABLE, {"onnect", "exceeded", "retries"}},
    {KL_CAUSE_UNREACHABLE, {"socketStartConnect", "ailed"}},
    {KL_CAUSE_RETRY, {"onnect", "retrying"}},
    {KL_CAUSE_SIZES, {"essage truncated"}},
    {KL_CAUSE_SIZES, {"collective mismatch"}},
    {KL_CAUSE_SIZES, {"mismatch in collective sizes"}},
    {KL_CAUSE_NO_ALGORITHM, {"o algorithm/protocol available"}},
    {KL_CAUSE_RINGS, {"does not loop back"}},
    {KL_CAUSE_RINGS, {"ring", "does not contain rank"}},
    {KL_CAUSE_P2P_OFF, {"P2P is disabled between"}},
    {KL_CAUSE_P2P_FAILED, {"ould not enable P2P"}},
    {KL_CAUSE_P2P_FAILED, {"failed to peer with"}},
    {KL_CAUSE_P2P_FAILED, {"peer access is not supported"}},
    {KL_CAUSE_IPC, {"cuMemImportFromShareableHandle"}},
    {KL_CAUSE_IPC, {"cuMemExportToShareableHandle"}},
    {KL_CAUSE_IPC, {"cudaIpcOpenMemHandle"}},
    {KL_CAUSE_IPC, {"cudaIpcGetMemHandle"}},
    {KL_CAUSE_IPC, {"UDS", "failed"}},
    {KL_CAUSE_NVML, {"Driver/library version mismatch"}},
    {KL_CAUSE_NVML, {"nvmlInit", "failed"}},
    {KL_CAUSE_FALLBACK, {"Could not find a path for pattern"}},
    {KL_CAUSE_PLUGIN_NO_GDR, {"disabling GDR"}},
    {KL_CAUSE_PLUGIN_NO_GDR, {"force simple protocol: GDR not supported"}},
    {KL_CAUSE_PLUGIN_FAILED, {"aws-ofi-nccl initialization failed"}},
    {KL_CAUSE_PLUGIN_FAILED, {"NET/OFI", "Failing initialization"}},
    {KL_CAUSE_PLUGIN_FAILED, {"NET/OFI", "No eligible providers"}},
    {KL_CAUSE_PLUGIN_FAILED, {"NET/OFI Unable to find"}},
    {KL_CAUSE_PLUGIN_FAILED, {"NET/Plugin", "load", "rror"}},
    {KL_CAUSE_NO_IB, {"NET/IB : No device found"}},
    {KL_CAUSE_NO_IB, {"NET/IB", "No IP interface found"}},
    {KL_CAUSE_NO_VERBS, {"Failed to open libibverbs"}},
    {KL_CAUSE_IOMMU, {"iommu=pt"}},
    {KL_CAUSE_NUMA_BALANCING, {"NUMA auto balancing enabled"}},
    {KL_CAUSE_PEER_GONE, {"onnection closed by remote peer"}},
    {KL_CAUSE_PEER_GONE, {"onnection reset by peer"}},
    {KL_CAUSE_PEER_GONE, {"remote process has terminated"}},
    {KL_CAUSE_PEER_GONE, {"roken pipe"}},
    {KL_CAUSE_TIMEOUT, {"Watchdog caught collective operation timeout"}},
    {KL_CAUSE_TIMEOUT, {"collective operation timeout"}},
    {KL_CAUSE_TIMEOUT, {"Some NCCL operations have failed or timed out"}},
    {KL_CAUSE_KILLED, {"exited on signal"}},
    {KL_CAUSE_TIMEOUT, {"Heartbeat monitor timed out"}},
    {KL_CAUSE_KILLED, {"oom-kill"}},
    {KL_CAUSE_KILLED, {"oom_kill"}},
    {KL_CAUSE_KILLED, {"Out of memory: Killed process"}},
    {KL_CAUSE_KILLED, {"slurmstepd", "CANCELLED"}},
    {KL_CAUSE_KILLED, {"Signal: Segmentation fault"}},
    {KL_CAUSE_GPU_MEMORY, {"out of memory"}},
    {KL_CAUSE_ABORTED, {"Abort COMPLETE"}},
    {KL_CAUSE_ABORTED, {"NCCL communicator was aborted"}},
};

static bool has_all(const char *text, const char *const word[3])
{
    for (int i = 0; i < 3 && word[i]; i++)
        if (!strstr(text, word[i])) return false;
    return true;
}

/* "NVRM: Xid (PCI:0000:1b:00): 79, ...": the number tells whose fault it is. */
static enum kl_log_cause xid_cause(const char *text)
{
    static const struct {
        int xid;
        enum kl_log_cause cause;
    } xids[] = {{13, KL_CAUSE_PROGRAM_FAULT}, {31, KL_CAUSE_PROGRAM_FAULT}, {43, KL_CAUSE_PROGRAM_FAULT},
                {69, KL_CAUSE_PROGRAM_FAULT}, {45, KL_CAUSE_XID_CLEANUP},   {48, KL_CAUSE_GPU_BROKEN},
                {61, KL_CAUSE_GPU_BROKEN},    {62, KL_CAUSE_GPU_BROKEN},    {63, KL_CAUSE_GPU_BROKEN},
                {64, KL_CAUSE_GPU_BROKEN},    {74, KL_CAUSE_GPU_BROKEN},    {79, KL_CAUSE_GPU_BROKEN},
                {92, KL_CAUSE_GPU_BROKEN},    {94, KL_CAUSE_GPU_BROKEN},    {95, KL_CAUSE_GPU_BROKEN},
                {119, KL_CAUSE_GPU_BROKEN},   {120, KL_CAUSE_GPU_BROKEN},   {140, KL_CAUSE_GPU_BROKEN}};
    const char *at = strstr(text, "NVRM: Xid"), *number = at ? strstr(at, "): ") : NULL;

    if (!at) return KL_CAUSE_NONE;
    int xid = number ? (int)strtol(number + 3, NULL, 10) : 0;

    for (size_t i = 0; i < sizeof xids / sizeof xids[0]; i++)
        if (xids[i].xid == xid) return xids[i].cause;
    return KL_CAUSE_XID;
}

enum kl_log_cause kl_cause_of(const char *text, const char *where, bool loud)
{
    enum kl_log_cause xid = xid_cause(text);

    if (xid != KL_CAUSE_NONE) return xid;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (has_all(text, table[i].word)) return table[i].cause;
    if (loud && strstr(where, "p2p.cc") && strstr(text, "Cuda failure")) return KL_CAUSE_IPC;
    return KL_CAUSE_NONE;
}

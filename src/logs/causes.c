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
    [KL_CAUSE_TESTS_FAULT] =
        {"tests_fault", KL_LOG_STOPS,
         "a kernel of NCCL failed: nccl-tests runs no kernels of a program, so suspect the release of NCCL or of the "
         "driver, and the GPU",
         "try the newest NCCL and driver for this GPU; look for Xid in the kernel's log; repeat with NCCL_PROTO=Simple "
         "and "
         "with one GPU after another"},
    [KL_CAUSE_FORK] =
        {"fork", KL_LOG_STOPS,
         "CUDA cannot be used in this process: it was used before the process was forked (initialization error)",
         "start worker processes with spawn or forkserver, or use CUDA only after the fork; in a container also check "
         "that the GPU's device files are there"},
    [KL_CAUSE_NO_DRIVER] =
        {"no_driver", KL_LOG_STOPS, "the driver's library, libcuda.so.1, is not found",
         "start the container with the NVIDIA runtime (--gpus all); NCCL_CUDA_PATH names the folder of "
         "libcuda.so.1 elsewhere"},
    [KL_CAUSE_PEER_HIDDEN] =
        {"peer_hidden", KL_LOG_STOPS,
         "the peer's GPU is hidden from this process: it imports memory of a GPU that it does not see (P2P, error 101)",
         "let every task see all GPUs of its host: Slurm --gpu-bind=none, one container for all tasks of a host, no "
         "CUDA_VISIBLE_DEVICES of one GPU per task; NCCL_P2P_DISABLE=1 shows whether that is the cause"},
    [KL_CAUSE_NVML_HIDDEN] =
        {"nvml_hidden", KL_LOG_STOPS,
         "NVML does not find a GPU that CUDA uses: GPUs are bound to tasks or containers one by one, and hidden from "
         "others",
         "let every task see all GPUs of its host: Slurm --gpu-bind=none instead of --gpus-per-task, one container "
         "with --gpus all; compare nvidia-smi -L in each task"},
    [KL_CAUSE_USAGE] = {"usage", KL_LOG_STOPS, "a call of NCCL has a wrong argument, or comes at the wrong time",
                        "correct the call: the line names function and argument; NCCL_CHECK_POINTERS=1 checks buffers"},
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
    [KL_CAUSE_NVLS_FABRIC] =
        {"nvls_fabric", KL_LOG_STOPS,
         "the NVSwitches refuse multicast to NVLS (CUDA error 401, 800, 801 or 802): the Fabric Manager or the "
         "partition of a "
         "virtual machine does not offer it",
         "check nvidia-fabricmanager (running, of the driver's version) and nvidia-smi -q (Fabric State, Status); "
         "after a "
         "GPU reset restart it; a virtual machine needs a full partition with multicast; NCCL_NVLS_ENABLE=0 turns NVLS "
         "off"},
    [KL_CAUSE_NVLS_CUMEM] = {"nvls_cumem", KL_LOG_STOPS,
                             "NVLS is used though NCCL_CUMEM_ENABLE=0 rules out the memory that it needs (cuMem)",
                             "set NCCL_NVLS_ENABLE=0 as well; or unset NCCL_CUMEM_ENABLE"},
    [KL_CAUSE_MNNVL_IMEX] =
        {"mnnvl_imex", KL_LOG_STOPS,
         "NVLink between hosts (MNNVL) is there but cannot be used: the process has no IMEX channel",
         "create and mount an IMEX channel (/dev/nvidia-caps-imex-channels/channel0) and check nvidia-imex on all "
         "hosts "
         "of the domain (nvidia-imex-ctl -N); NCCL_MNNVL_ENABLE=0 does without"},
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
    [KL_CAUSE_SHM_ZERO] =
        {"shm_zero", KL_LOG_STOPS,
         "shared memory of size 0: host memory of CUDA (cuMem) could not be had in this container, so there is nothing "
         "to "
         "share",
         "NCCL_CUMEM_HOST_ENABLE=0 uses /dev/shm instead; or let the container see NUMA nodes (docker run --cap-add "
         "SYS_NICE)"},
    [KL_CAUSE_SHM_GONE] =
        {"shm_gone", KL_LOG_STOPS,
         "a rank cannot open the shared memory of another: they count as one host, but do not share /dev/shm",
         "give containers of one host the same /dev/shm (--ipc=host), or tell them apart with NCCL_HOSTID; "
         "NCCL_SHM_DISABLE=1 shows whether that is the cause"},
    [KL_CAUSE_SHM_PEER] =
        {"shm_peer", KL_LOG_STOPS,
         "the shared-memory transport fails: CUDA refuses the mapping between these GPUs, with P2P or without",
         "NCCL_SHM_DISABLE=1 avoids this transport as well; NCCL_CUMEM_HOST_ENABLE=0 shares memory the older way; "
         "check ACS "
         "and the IOMMU"},
    [KL_CAUSE_REGISTER] =
        {"register", KL_LOG_STOPS,
         "a buffer cannot be registered: its address is not known to the driver, as with memory of the virtual-memory "
         "API "
         "(expandable segments) or a driver that does not fit the toolkit",
         "allocate the buffer with ncclMemAlloc; PyTorch: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False; "
         "NCCL_LOCAL_REGISTER=0 or NCCL_GRAPH_REGISTER=0 shows whether registration is the cause; compare nvidia-smi's "
         "CUDA "
         "version with the toolkit's"},
    [KL_CAUSE_GPU_MEMORY] = {"gpu_memory", KL_LOG_STOPS, "GPU memory is used up",
                             "leave NCCL a few hundred MB for each communicator, or use fewer communicators or "
                             "channels (NCCL_MAX_CTAS)"},
    [KL_CAUSE_MEMLOCK] = {"memlock", KL_LOG_STOPS,
                          "the NIC's driver refused a queue or memory: usually the limit of locked memory is too low",
                          "ulimit -l unlimited, also for the launcher's daemon and containers"},
    [KL_CAUSE_REG_MEMORY] =
        {"reg_memory", KL_LOG_STOPS,
         "memory cannot be registered with the NIC: GPU memory without nvidia-peermem or DMA-BUF, or the limit of "
         "locked "
         "memory",
         "GPU memory: load nvidia-peermem or use DMA-BUF, NCCL_NET_GDR_LEVEL=LOC shows whether that is the cause; host "
         "memory: ulimit -l unlimited, also for the launcher's daemon and containers"},
    [KL_CAUSE_NIC_ACCESS] =
        {"nic_access", KL_LOG_STOPS, "a NIC cannot be opened by this process",
         "pass /dev/infiniband into the container and check its permissions; ibv_devinfo as the same "
         "user"},
    [KL_CAUSE_EFA_SECURITY] =
        {"efa_security", KL_LOG_STOPS,
         "EFA cannot send to the peer: the security group must allow all traffic to and from itself",
         "add inbound and outbound rules with all protocols whose source is the group itself, and put all instances in "
         "it; "
         "fi_pingpong -p efa between the two hosts shows whether that is the cause"},
    [KL_CAUSE_EFA_PEER] = {"efa_peer", KL_LOG_STOPS,
                           "libfabric reports an error: the peer's EFA endpoint is gone or not addressable",
                           "look at the peer's log: its process may have exited; if it runs, check subnet and security "
                           "group of both, and "
                           "fi_pingpong -p efa"},
    [KL_CAUSE_EFA_MEMORY] = {"efa_memory", KL_LOG_STOPS, "EFA could not register memory",
                             "ulimit -l unlimited; GPU memory needs DMA-BUF or the efa_nv_peermem module"},
    [KL_CAUSE_EFA_DOMAIN] = {"efa_domain", KL_LOG_STOPS,
                             "libfabric could not open a device: its resources are used up or not accessible",
                             "look for other jobs on the host; pass the EFA devices into the container"},
    [KL_CAUSE_TCPX_MANAGER] =
        {"tcpx_manager", KL_LOG_STOPS, "the TCPX plugin does not reach its receive-rule manager on the host",
         "start the manager (tcpgpudmarxd or rxdm) before the job, and mount its socket folder (/run/tcpx) into the "
         "container"},
    [KL_CAUSE_FABRIC] = {"fabric", KL_LOG_STOPS, "libfabric or its NCCL plugin reports an error of the network",
                         "FI_LOG_LEVEL=warn and the line's code say more; fi_pingpong tests the two hosts"},
    [KL_CAUSE_NO_TRANSPORT] =
        {"no_transport", KL_LOG_STOPS,
         "two ranks have no way to each other: P2P, shared memory and network are all ruled out",
         "look at NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET in the log; one of the three must be possible"},
    [KL_CAUSE_CALLS] =
        {"calls", KL_LOG_FOLLOWS, "ranks called different collectives",
         "compare the program's path on the two ranks: a branch, an exception or an uneven number of batches"},
    [KL_CAUSE_BOOTSTRAP_DEFECT] =
        {"bootstrap_defect", KL_LOG_STOPS,
         "a message of the bootstrap has a wrong size: a defect of this release (2.19.3), or a stray connection",
         "use a release from 2.19.4 on; check that nothing else connects to the address of rank 0"},
    [KL_CAUSE_BOOTSTRAP_SIZE] = {"bootstrap_size", KL_LOG_STOPS,
                                 "a message of the bootstrap is not one of this job's: a stray connection (a port "
                                 "scan, another job), or another "
                                 "release",
                                 "choose the interface with NCCL_SOCKET_IFNAME; use another NCCL_COMM_ID for each job; "
                                 "compare the releases of all "
                                 "hosts"},
    [KL_CAUSE_CUDA] =
        {"cuda", KL_LOG_STOPS, "CUDA reports an error",
         "NCCL_DEBUG=WARN names the file and the function that met it; compute-sanitizer finds errors of kernels"},
    [KL_CAUSE_GDR_REGISTER] =
        {"gdr_register", KL_LOG_STOPS,
         "GPU memory cannot be registered with the NIC: there is no nvidia-peermem, and no DMA-BUF",
         "modprobe nvidia-peermem, or DMA-BUF: open kernel modules, a kernel from 5.12 on and an "
         "rdma-core that has it; NCCL_NET_GDR_LEVEL=LOC shows whether that is the cause; the limit of "
         "locked memory (ulimit -l) is only another candidate"},
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
    [KL_CAUSE_STORE] = {"store", KL_LOG_FOLLOWS, "a rank waited for others at PyTorch's store: some did not come",
                        "look for the ranks that do not print anything, and whether MASTER_ADDR reaches all"},
    [KL_CAUSE_PROXY] = {"proxy", KL_LOG_FOLLOWS, "NCCL's proxy thread passes on the failure of a call", NULL},
    [KL_CAUSE_FAILED] = {"failed", KL_LOG_FOLLOWS, "the program ended because a call of NCCL had failed",
                         "the first warning of NCCL above is the cause; without one: NCCL_DEBUG=INFO"},
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
    [KL_CAUSE_SHARP] =
        {"sharp", KL_LOG_COSTS, "SHARP could not be used: the network does not reduce",
         "check sharp_am and sharpd, and that the job may use them; NCCL_COLLNET_ENABLE=0 stops the attempt"},
    [KL_CAUSE_FINE_GRAIN] = {"fine_grain", KL_LOG_COSTS, "GPUs without XGMI need fine-grained PCIe memory for P2P",
                             "HSA_FORCE_FINE_GRAIN_PCIE=1"},
    [KL_CAUSE_CUSTOM_OFF] = {"custom_off", KL_LOG_REMARK,
                             "vLLM uses NCCL for its all-reduces, not its own kernels, on these GPUs", NULL},
    [KL_CAUSE_NO_CPU_HINT] = {"no_cpu_hint", KL_LOG_REMARK,
                              "Fast Socket found no CPU of an incoming connection: harmless, it goes on without", NULL},
    [KL_CAUSE_FABRIC_NOTE] = {"fabric_note", KL_LOG_REMARK,
                              "libfabric warns while it starts: harmless where connections come about", NULL},
    [KL_CAUSE_PLUGIN_SYMBOL] = {"plugin_symbol", KL_LOG_REMARK,
                                "a plugin has an older interface than NCCL looks for first: harmless", NULL},
    [KL_CAUSE_RAS] = {"ras", KL_LOG_REMARK, "the RAS service warns: collectives do not depend on it", NULL},
    [KL_CAUSE_RETRY_CAME] = {"retry", KL_LOG_REMARK, "connections were retried, and came about: harmless", NULL},
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

/* "NVRM: Xid (PCI:0000:1b:00): 79, ...": the number tells program faults from hardware faults. */
enum kl_log_cause kl_xid_cause(const char *text)
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

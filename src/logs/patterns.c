/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/patterns.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ROW(from, meaning, ...)                                                                                        \
    {                                                                                                                  \
        KL_SOURCE_##from, __VA_ARGS__, .cause = KL_CAUSE_##meaning                                                     \
    }
#define SAYS(...)                                                                                                      \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
#define AT(file) .place = file
#define CUDA(n)  .cuda = (n)
#define WHEN(w)  .when = KL_WHEN_##w
#define ANY                                                                                                            \
    {                                                                                                                  \
        NULL                                                                                                           \
    }

/* The first row that fits decides: rows with a place or a condition stand before those without. */
static const struct kl_log_pattern table[] = {
    /* ---- releases and drivers ---- */
    ROW(NCCL, VERSIONS, SAYS("ismatched NCCL version")),
    ROW(NCCL, VERSIONS, SAYS("NCCL version mismatch")),
    ROW(NCCL, VERSIONS, SAYS("differs from rank", "NCCL version")),
    ROW(NCCL, NO_DRIVER, SAYS("Failed to find CUDA library")),
    ROW(NCCL, NO_DRIVER, SAYS("Failed to open libcuda")),
    ROW(NCCL, DRIVER_OLD, SAYS("driver version is insufficient")),
    ROW(NCCL, DRIVER_OLD, SAYS("PTX was compiled with an unsupported toolchain")),
    ROW(NCCL, DRIVER_OLD, SAYS("forward compatibility was attempted")),
    ROW(NCCL, DRIVER_OLD, ANY, CUDA(35)),
    ROW(NCCL, DRIVER_OLD, ANY, CUDA(222)),
    ROW(NCCL, DRIVER_OLD, ANY, CUDA(803)),
    ROW(NCCL, DRIVER_OLD, ANY, CUDA(804)),

    /* ---- CUDA errors whose place decides ---- */
    ROW(NCCL, REGISTER, ANY, AT("register|Register|RegBuf|regBuf|RegMem"), CUDA(500)),
    ROW(NCCL, REGISTER, SAYS("cuMemGetAddressRange")),
    ROW(NCCL, REGISTER, ANY, AT("register|ncclRegister|CommRegister"), CUDA(-1)),
    ROW(NCCL, PEER_HIDDEN, ANY, AT("p2p.cc|P2p|p2p"), CUDA(101)),
    ROW(NCCL, PEER_HIDDEN, ANY, AT("p2p.cc|P2p|p2p"), CUDA(100)),
    ROW(NCCL, SHM_PEER, ANY, AT("shm.cc|Shm|shmutils"), CUDA(217)),
    ROW(NCCL, SHM_PEER, ANY, AT("shm.cc|Shm|shmutils"), CUDA(-1)),
    ROW(NCCL, NVLS_SLOTS, ANY, AT("nvls|Nvls|ulticast"), CUDA(2)),
    ROW(NCCL, NVLS_FABRIC, ANY, AT("nvls|Nvls|ulticast"), CUDA(401)),
    ROW(NCCL, NVLS_FABRIC, ANY, AT("nvls|Nvls|ulticast"), CUDA(800)),
    ROW(NCCL, NVLS_FABRIC, ANY, AT("nvls|Nvls|ulticast"), CUDA(801)),
    ROW(NCCL, NVLS_FABRIC, ANY, AT("nvls|Nvls|ulticast"), CUDA(802)),
    ROW(NCCL, NVLS_CUMEM, ANY, AT("nvls|Nvls|ulticast"), CUDA(-1), WHEN(CUMEM_OFF)),
    ROW(NCCL, NVLS_BIND, ANY, AT("nvls|Nvls|ulticast"), CUDA(-1)),
    ROW(NCCL, NVLS_FABRIC, SAYS("NVLS", "ulticast"), CUDA(401)),
    ROW(NCCL, NVLS_FABRIC, SAYS("NVLS", "ulticast"), CUDA(800)),
    ROW(NCCL, NVLS_FABRIC, SAYS("NVLS", "ulticast"), CUDA(801)),
    ROW(NCCL, NVLS_FABRIC, SAYS("cuMulticast"), CUDA(401)),
    ROW(NCCL, NVLS_FABRIC, SAYS("cuMulticast"), CUDA(800)),
    ROW(NCCL, NVLS_FABRIC, SAYS("cuMulticast"), CUDA(801)),
    ROW(NCCL, NVLS_SLOTS, SAYS("NVLS", "ulticast", "out of memory")),
    ROW(NCCL, NVLS_SLOTS, SAYS("NVSwitch multicast resources")),
    ROW(NCCL, NVLS_SLOTS, SAYS("resources to the multicast team")),
    ROW(NCCL, NVLS_CUMEM, SAYS("NVLS", "ulticast"), CUDA(1), WHEN(CUMEM_OFF)),
    ROW(NCCL, NVLS_BIND, SAYS("Failed to bind NVLink SHARP")),
    ROW(NCCL, NVLS_BIND, SAYS("Failed to create", "ulticast")),
    ROW(NCCL, MNNVL_IMEX, SAYS("MNNVL", "IMEX channel")),
    ROW(NCCL, MNNVL_IMEX, SAYS("MNNVL", "not working")),
    ROW(NCCL, MNNVL_IMEX, ANY, AT("mnnvl"), CUDA(-1)),
    ROW(NCCL, MNNVL_IMEX, SAYS("abric handle"), CUDA(-1)),

    /* ---- CUDA errors by themselves ---- */
    ROW(NCCL, FORK, ANY, CUDA(3)),
    ROW(PYTORCH, FORK, SAYS("Cannot re-initialize CUDA in forked subprocess")),
    ROW(NCCL, NO_KERNEL, SAYS("named symbol not found")),
    ROW(NCCL, NO_KERNEL, SAYS("no kernel image is available")),
    ROW(NCCL, NO_KERNEL, SAYS("invalid device function")),
    ROW(NCCL, NO_KERNEL, SAYS("device kernel image is invalid")),
    ROW(RCCL, NO_KERNEL, SAYS("hipErrorNoBinaryForGpu")),
    ROW(NCCL, NO_KERNEL, ANY, CUDA(209)),
    ROW(NCCL, NO_KERNEL, ANY, CUDA(98)),
    ROW(NCCL, NO_KERNEL, ANY, CUDA(500)),
    ROW(NCCL, FABRIC_MANAGER, SAYS("system not yet initialized")),
    ROW(NCCL, FABRIC_MANAGER, ANY, CUDA(802)),
    ROW(NCCL, FABRIC_MANAGER, SAYS("abric", "not initialized")),
    ROW(NCCL, GPU_BROKEN, SAYS("uncorrectable")),
    ROW(NCCL, GPU_BROKEN, SAYS("GPU has fallen off the bus")),
    ROW(NCCL, GPU_BROKEN, SAYS("GPU is lost")),
    ROW(NCCL, GPU_BROKEN, ANY, CUDA(214)),
    ROW(NCCL, GPU_BROKEN, ANY, CUDA(220)),
    ROW(NCCL, TESTS_FAULT, ANY, CUDA(700), WHEN(TESTS)),
    ROW(NCCL, TESTS_FAULT, ANY, CUDA(719), WHEN(TESTS)),
    ROW(NCCL, TESTS_FAULT, ANY, CUDA(714), WHEN(TESTS)),
    ROW(NCCL, TESTS_FAULT, ANY, CUDA(715), WHEN(TESTS)),
    ROW(NCCL, TESTS_FAULT, ANY, CUDA(716), WHEN(TESTS)),
    ROW(NCCL, TESTS_FAULT, ANY, CUDA(718), WHEN(TESTS)),
    ROW(NCCL, PROGRAM_FAULT, SAYS("hardware stack error")),
    ROW(NCCL, PROGRAM_FAULT, SAYS("illegal instruction was encountered")),
    ROW(NCCL, PROGRAM_FAULT, SAYS("invalid program counter")),
    ROW(NCCL, PROGRAM_FAULT, SAYS("illegal memory access")),
    ROW(NCCL, PROGRAM_FAULT, SAYS("unspecified launch failure")),
    ROW(NCCL, PROGRAM_FAULT, SAYS("misaligned address")),
    ROW(NCCL, PROGRAM_FAULT, SAYS("device-side assert")),
    ROW(NCCL, PROGRAM_FAULT, ANY, CUDA(700)),
    ROW(NCCL, PROGRAM_FAULT, ANY, CUDA(719)),

    /* ---- ranks and devices ---- */
    ROW(NCCL, DUPLICATE_GPU, SAYS("Duplicate GPU detected")),
    ROW(NCCL, RANK_COUNT, SAYS("mismatch in rank count")),
    ROW(NCCL, RANK_TWICE, SAYS("has already checked in")),
    ROW(NCCL, RANK_TWICE, SAYS("Invalid rank requested")),
    ROW(NCCL, DEVICE_NUMBER, SAYS("invalid device ordinal")),
    ROW(NCCL, DEVICE_NUMBER, SAYS("no CUDA-capable device")),
    ROW(NCCL, DEVICE_NUMBER, ANY, CUDA(101)),
    ROW(NCCL, DEVICE_NUMBER, ANY, CUDA(100)),
    ROW(NCCL, NVML, SAYS("Driver/library version mismatch")),
    ROW(NCCL, NVML_HIDDEN, SAYS("nvmlDeviceGetHandleByPciBusId", "Not Found")),
    ROW(NCCL, NVML_HIDDEN, SAYS("nvmlDeviceGetHandleByIndex", "failed")),
    ROW(NCCL, NVML_HIDDEN, SAYS("nvmlDeviceGetHandleByPciBusId", "failed")),
    ROW(NCCL, NVML, SAYS("nvmlInit", "failed")),
    ROW(NCCL, NVML, SAYS("Failed to open libnvidia-ml")),
    ROW(NCCL, USAGE, SAYS("argument is NULL")),
    ROW(NCCL, USAGE, SAYS("invalid root")),
    ROW(NCCL, USAGE, SAYS("invalid type")),
    ROW(NCCL, USAGE, SAYS("invalid reduction operation")),
    ROW(NCCL, USAGE, SAYS("mismatchs with NCCL device")),
    ROW(NCCL, USAGE, SAYS("is not a valid pointer")),
    ROW(NCCL, USAGE, SAYS("corrupted comm object")),
    ROW(NCCL, USAGE, SAYS("not in a group call")),
    ROW(NCCL, USAGE, SAYS("without a matching")),
    ROW(NCCL, USAGE, SAYS("ncclConfig_t", "not initialized")),
    ROW(NCCL, USAGE, SAYS("mix blocking and nonblocking")),

    /* ---- files ---- */
    ROW(NCCL, XML_NODES, SAYS("too many XML nodes")),
    ROW(NCCL, GRAPH_FILE, SAYS("XML Import Channel")),
    ROW(NCCL, GRAPH_FILE, SAYS("Could not open XML graph file")),
    ROW(NCCL, TOPO_FILE_GONE, SAYS("Could not open XML topology file")),
    ROW(NCCL, TOPO_FILE, SAYS("XML", "arse error")),
    ROW(NCCL, TOPO_FILE, SAYS("Attribute", " of node ", "not found")),

    /* ---- shared memory ---- */
    ROW(NCCL, SHM_ZERO, SAYS("shared memory", "size 0)")),
    ROW(NCCL, SHM_ZERO, SAYS("shared memory", "size 0,")),
    ROW(NCCL, SHM_ZERO, SAYS("failed to extend", " to 0 bytes")),
    ROW(NCCL, SHM_SMALL, SAYS("/dev/shm", "No space left")),
    ROW(NCCL, SHM_SMALL, SAYS("failed to extend /dev/shm")),
    ROW(NCCL, SHM_SMALL, SAYS("creating shared memory segment")),
    ROW(NCCL, SHM_SMALL, SAYS("posix_fallocate", "No space left")),
    ROW(NCCL, SHM_GONE, SAYS("attaching to shared memory segment")),
    ROW(NCCL, SHM_SMALL, SAYS("open shared memory segment")),

    /* ---- InfiniBand and RoCE ---- */
    ROW(NCCL, GID_EMPTY, SAYS("ibv_modify_qp", "local GID ::,")),
    ROW(NCCL, GID_EMPTY, SAYS("ibv_modify_qp", "No data available")),
    ROW(NCCL, IB_NO_ROUTE, SAYS("ibv_modify_qp", "timed out")),
    ROW(NCCL, IB_NO_ROUTE, SAYS("ibv_modify_qp", "unreachable")),
    ROW(NCCL, IB_NO_ROUTE, SAYS("ibv_modify_qp failed")),
    ROW(NCCL, IB_NO_ROUTE, SAYS("ibv_create_ah failed")),
    ROW(NCCL, GDR_REGISTER, SAYS("ibv_reg_", "failed"), AT("DmaBuf|Dmabuf|dmabuf")),
    ROW(NCCL, GDR_REGISTER, SAYS("ibv_reg_", "failed"), WHEN(GDR_OFF)),
    ROW(NCCL, REG_MEMORY, SAYS("ibv_reg_", "failed", "Cannot allocate memory")),
    ROW(NCCL, GDR_REGISTER, SAYS("ibv_reg_", "failed")),
    ROW(NCCL, MEMLOCK, SAYS("ibv_", "failed", "Cannot allocate memory")),
    ROW(NCCL, MEMLOCK, SAYS("ibv_create_cq", "failed")),
    ROW(NCCL, MEMLOCK, SAYS("ibv_create_qp", "failed")),
    ROW(NCCL, MEMLOCK, SAYS("ibv_create_srq", "failed")),
    ROW(NCCL, NIC_ACCESS, SAYS("ibv_alloc_pd", "failed")),
    ROW(NCCL, NIC_ACCESS, SAYS("ibv_open_device", "failed")),
    ROW(NCCL, NIC_ACCESS, SAYS("NET/IB : Unable to open device")),
    ROW(NCCL, IB_RETRY, SAYS("ompletion", "status=12")),
    ROW(NCCL, IB_RETRY, SAYS("ompletion", "status=13")),
    ROW(NCCL, IB_RETRY, SAYS("ompletion with error 12")),
    ROW(NCCL, IB_RETRY, SAYS("ompletion with error 13")),
    ROW(NCCL, IB_ACCESS, SAYS("ompletion", "status=10")),
    ROW(NCCL, IB_ACCESS, SAYS("ompletion", "status=11")),
    ROW(NCCL, IB_ACCESS, SAYS("ompletion", "status=9")),
    ROW(NCCL, IB_ACCESS, SAYS("ompletion", "status=4")),
    ROW(NCCL, IB_ACCESS, SAYS("ompletion with error 10")),
    ROW(NCCL, IB_ACCESS, SAYS("ompletion with error 4")),
    ROW(NCCL, PEER_GONE, SAYS("ompletion", "status=5")),
    ROW(NCCL, PEER_GONE, SAYS("ompletion with error 5")),
    ROW(NCCL, IB_PORT, SAYS("async", "port error")),
    ROW(NCCL, IB_PORT, SAYS("async", "device fatal")),
    ROW(NCCL, IB_PORT, SAYS("NET/IB", "link down")),
    ROW(NCCL, IB_EVENT, SAYS("async event", "GID table change")),
    ROW(NCCL, IB_EVENT, SAYS("async event", "client reregistration")),
    ROW(NCCL, IB_EVENT, SAYS("async event", "lid change")),
    ROW(NCCL, IB_EVENT, SAYS("async event", "SM change")),
    ROW(NCCL, NO_VERBS, SAYS("Failed to open libibverbs")),
    ROW(NCCL, NO_IB, SAYS("NET/IB : No device found")),
    ROW(NCCL, NO_IB, SAYS("NET/IB", "No IP interface found")),

    /* ---- libfabric and aws-ofi-nccl ---- */
    ROW(LIBFABRIC, EFA_SECURITY, SAYS("err: 20,"), AT("libfabric")),
    ROW(LIBFABRIC, EFA_SECURITY, SAYS("Unreachable remote"), AT("libfabric")),
    ROW(LIBFABRIC, EFA_SECURITY, SAYS("security group"), AT("libfabric")),
    ROW(LIBFABRIC, EFA_SECURITY, SAYS("(15)"), AT("efa|rxr")),
    ROW(LIBFABRIC, EFA_PEER, SAYS("Unresponsive re"), AT("libfabric")),
    ROW(LIBFABRIC, EFA_PEER, SAYS("Invalid address"), AT("libfabric")),
    ROW(LIBFABRIC, EFA_PEER, SAYS("Invalid AH"), AT("libfabric")),
    ROW(LIBFABRIC, EFA_PEER, SAYS("Destination resource not ready"), AT("libfabric")),
    ROW(LIBFABRIC, EFA_PEER, SAYS("Unknown peer"), AT("libfabric")),
    ROW(LIBFABRIC, EFA_PEER, SAYS("Peer EFA addr", "(7)"), AT("efa|rxr")),
    ROW(LIBFABRIC, EFA_PEER, SAYS("Peer EFA addr", "(9)"), AT("efa|rxr")),
    ROW(LIBFABRIC, EFA_PEER, SAYS("Peer EFA addr", "(13)"), AT("efa|rxr")),
    ROW(LIBFABRIC, EFA_PEER, SAYS("Peer EFA addr", "(14)"), AT("efa|rxr")),
    ROW(LIBFABRIC, EFA_MEMORY, SAYS("Unable to register memory"), AT("libfabric")),
    ROW(LIBFABRIC, EFA_MEMORY, SAYS("annot allocate memory"), AT("libfabric")),
    ROW(LIBFABRIC, FABRIC, ANY, AT(":cq:|rxr|:ep_data:")),
    ROW(LIBFABRIC, FABRIC_NOTE, ANY, AT("libfabric")),
    ROW(OFI, EFA_SECURITY, SAYS("Request", "completed with error", "RC: 20")),
    ROW(OFI, EFA_SECURITY, SAYS("Request", "completed with error", "nreachable remote")),
    ROW(OFI, EFA_PEER, SAYS("Request", "completed with error", "nresponsive re")),
    ROW(OFI, EFA_PEER, SAYS("Request", "completed with error", "nvalid address")),
    ROW(OFI, EFA_PEER, SAYS("Request", "completed with error", "RC: 5.")),
    ROW(OFI, FABRIC, SAYS("Request", "completed with error")),
    ROW(OFI, GDR_REGISTER, SAYS("Unable to register memory", "RC: -14")),
    ROW(OFI, EFA_MEMORY, SAYS("Unable to register memory")),
    ROW(OFI, EFA_DOMAIN, SAYS("fabric access domain")),
    ROW(OFI, PLUGIN_NO_GDR, SAYS("disabling GDR")),
    ROW(OFI, PLUGIN_NO_GDR, SAYS("force simple protocol: GDR not supported")),
    ROW(OFI, PLUGIN_FAILED, SAYS("aws-ofi-nccl initialization failed")),
    ROW(OFI, PLUGIN_FAILED, SAYS("NET/OFI", "Failing initialization")),
    ROW(OFI, PLUGIN_FAILED, SAYS("NET/OFI", "No eligible providers")),
    ROW(OFI, PLUGIN_FAILED, SAYS("NET/OFI", "fi_getinfo")),
    ROW(OFI, PLUGIN_FAILED, SAYS("NET/OFI Unable to find")),
    ROW(OFI, PLUGIN_FAILED, SAYS("NET/OFI", "Failed to initialize")),
    ROW(NCCL, PLUGIN_FAILED, SAYS("NET/Plugin", "load", "rror")),

    /* ---- FastSocket, TCPX, SHARP ---- */
    ROW(FASTSOCKET, NO_CPU_HINT, SAYS("Cannot get incoming CPU")),
    ROW(FASTSOCKET, RETRY_CAME, SAYS("Maximum retry reached for accept"), WHEN(CONNECTED)),
    ROW(FASTSOCKET, RETRY, SAYS("Maximum retry reached for accept")),
    ROW(TCPX, TCPX_MANAGER, SAYS("GPUDirectTCPX", "onnect", "ail")),
    ROW(TCPX, TCPX_MANAGER, SAYS("tcpgpudmarxd")),
    ROW(TCPX, TCPX_MANAGER, SAYS("RxRuleManager")),
    ROW(TCPX, TCPX_MANAGER, SAYS("RxRuleClient")),
    ROW(TCPX, TCPX_MANAGER, SAYS("GPUDirectTCPX", "unix", "ail")),
    ROW(SHARP, SHARP, SAYS("sharp_coll_init", "ail")),
    ROW(SHARP, SHARP, SAYS("sharp_coll", "rror")),
    ROW(SHARP, SHARP, SAYS("SHARP", "init", "ail")),

    /* ---- harmless ---- */
    ROW(NCCL, PLUGIN_SYMBOL, SAYS("Failed to find nccl", "symbol")),
    ROW(NCCL, RAS, ANY, AT("ras/|ras.cc|Ras")),

    /* ---- limits of processes ---- */
    ROW(NCCL, OPEN_FILES, SAYS("Too many open files")),
    ROW(NCCL, THREADS, SAYS("pthread_create", "failed")),
    ROW(NCCL, THREADS, SAYS("Resource temporarily unavailable", "thread")),

    /* ---- bootstrap and sockets ---- */
    ROW(NCCL, NO_INTERFACE, SAYS("o socket interface found")),
    ROW(NCCL, NO_INTERFACE, SAYS("o interface found")),
    ROW(NCCL, NO_NETWORK, SAYS("Error: network", "not found")),
    ROW(NCCL, NO_NETWORK, SAYS("Failed to initialize any NET plugin")),
    ROW(NCCL, NO_TRANSPORT, SAYS("No transport found")),
    ROW(NCCL, UNGROUPED, SAYS("family 1 is neither")),
    ROW(NCCL, UNGROUPED, SAYS("family 0 is neither")),
    ROW(NCCL, BOOTSTRAP_DEFECT, SAYS("essage truncated"), AT("bootstrap"), .since = 21900, .until = 21903),
    ROW(NCCL, BOOTSTRAP_SIZE, SAYS("essage truncated"), AT("bootstrap")),
    ROW(NCCL, BOOTSTRAP_SIZE, SAYS("wrong magic")),
    ROW(NCCL, BOOTSTRAP_SIZE, SAYS("socket magic", "!=")),
    ROW(NCCL, BOOTSTRAP_SIZE, SAYS("wrong type", "!="), AT("socket")),
    ROW(NCCL, RETRY, SAYS("socketPollConnect", "retrying")),
    ROW(NCCL, UNREACHABLE, SAYS("socketPollConnect", "onnection refused")),
    ROW(NCCL, UNREACHABLE, SAYS("socketPollConnect", "timed out")),
    ROW(NCCL, UNREACHABLE, SAYS("socketPollConnect", "No route to host")),
    ROW(NCCL, UNREACHABLE, SAYS("onnect", "fail", "onnection refused")),
    ROW(NCCL, UNREACHABLE, SAYS("onnect", "fail", "timed out")),
    ROW(NCCL, UNREACHABLE, SAYS("onnect", "fail", "No route to host")),
    ROW(NCCL, UNREACHABLE, SAYS("onnect", "fail", "etwork is unreachable")),
    ROW(NCCL, UNREACHABLE, SAYS("onnect", "exceeded", "retr")),
    ROW(NCCL, UNREACHABLE, SAYS("socketStartConnect", "ailed")),
    ROW(NCCL, UNREACHABLE, SAYS("in the same subnet as remote")),
    ROW(NCCL, RETRY, SAYS("onnect", "retrying")),

    /* ---- calls that differ ---- */
    ROW(PYTORCH, CALLS, SAYS("Detected mismatch between collectives on ranks")),
    ROW(NCCL, SIZES, SAYS("essage truncated")),
    ROW(NCCL, SIZES, SAYS("collective mismatch")),
    ROW(NCCL, SIZES, SAYS("mismatch in collective sizes")),
    ROW(NCCL, NO_ALGORITHM, SAYS("o algorithm/protocol available")),
    ROW(NCCL, RINGS, SAYS("does not loop back")),
    ROW(NCCL, RINGS, SAYS("ring", "does not contain rank")),

    /* ---- between GPUs of a host ---- */
    ROW(NCCL, P2P_OFF, SAYS("P2P is disabled between")),
    ROW(NCCL, P2P_FAILED, SAYS("ould not enable P2P")),
    ROW(NCCL, P2P_FAILED, SAYS("failed to peer with")),
    ROW(NCCL, P2P_FAILED, SAYS("peer access is not supported")),
    ROW(NCCL, P2P_FAILED, ANY, CUDA(217)),
    ROW(NCCL, IPC, SAYS("cuMemImportFromShareableHandle")),
    ROW(NCCL, IPC, SAYS("cuMemExportToShareableHandle")),
    ROW(NCCL, IPC, SAYS("cudaIpcOpenMemHandle")),
    ROW(NCCL, IPC, SAYS("cudaIpcGetMemHandle")),
    ROW(NCCL, IPC, SAYS("UDS", "failed")),
    ROW(NCCL, FALLBACK, SAYS("Could not find a path for pattern")),

    /* ---- RCCL ---- */
    ROW(RCCL, IOMMU, SAYS("iommu=pt")),
    ROW(RCCL, NUMA_BALANCING, SAYS("NUMA auto balancing enabled")),
    ROW(RCCL, FINE_GRAIN, SAYS("HSA_FORCE_FINE_GRAIN_PCIE")),

    /* ---- left behind by other failures ---- */
    ROW(NCCL, PEER_GONE, SAYS("onnection closed by remote peer")),
    ROW(NCCL, PEER_GONE, SAYS("onnection reset by peer")),
    ROW(NCCL, PEER_GONE, SAYS("remote process has terminated")),
    ROW(NCCL, PEER_GONE, SAYS("roken pipe")),
    ROW(NCCL, PROXY, SAYS("[Proxy Service", "Failed to execute operation")),
    ROW(NCCL, PROXY, SAYS("[Service thread]")),
    ROW(NCCL, PROXY, SAYS("Could not receive type from localRank")),
    ROW(NCCL, PROXY, SAYS("Proxy Call to rank", "failed")),
    ROW(NCCL, PROXY, SAYS("[Proxy Progress]", "rror")),
    ROW(PYTORCH, TIMEOUT, SAYS("Watchdog caught collective operation timeout")),
    ROW(PYTORCH, TIMEOUT, SAYS("collective operation timeout")),
    ROW(PYTORCH, TIMEOUT, SAYS("Some NCCL operations have failed or timed out")),
    ROW(PYTORCH, TIMEOUT, SAYS("Heartbeat monitor timed out")),
    ROW(PYTORCH, STORE, SAYS("wait timeout after", "keys:")),
    ROW(PYTORCH, STORE, SAYS("timed out", "waiting for clients")),
    ROW(PYTORCH, FAILED, SAYS("ncclUnhandledCudaError")),
    ROW(PYTORCH, FAILED, SAYS("ncclSystemError")),
    ROW(PYTORCH, FAILED, SAYS("ncclInternalError")),
    ROW(PYTORCH, FAILED, SAYS("ncclRemoteError")),
    ROW(PYTORCH, FAILED, SAYS("ncclInvalidUsage")),
    ROW(TESTS, FAILED, SAYS("Test NCCL failure")),
    ROW(TESTS, FAILED, SAYS("Test failure common.cu")),
    ROW(VLLM, FAILED, SAYS("RuntimeError: NCCL error:")),
    ROW(VLLM, CUSTOM_OFF, SAYS("ustom allreduce is disabled")),
    ROW(SYSTEM, KILLED, SAYS("exited on signal")),
    ROW(SYSTEM, KILLED, SAYS("oom-kill")),
    ROW(SYSTEM, KILLED, SAYS("oom_kill")),
    ROW(SYSTEM, KILLED, SAYS("Out of memory: Killed process")),
    ROW(SYSTEM, KILLED, SAYS("slurmstepd", "CANCELLED")),
    ROW(SYSTEM, KILLED, SAYS("Signal: Segmentation fault")),
    ROW(NCCL, GPU_MEMORY, SAYS("out of memory")),
    ROW(NCCL, GPU_MEMORY, ANY, CUDA(2)),
    ROW(NCCL, ABORTED, SAYS("Abort COMPLETE")),
    ROW(PYTORCH, ABORTED, SAYS("NCCL communicator was aborted")),

    /* ---- CUDA errors that no row above knows ---- */
    ROW(NCCL, IPC, ANY, AT("p2p.cc"), CUDA(-1)),
    ROW(NCCL, CUDA, ANY, CUDA(-1)),
};

enum { ROWS = sizeof table / sizeof table[0] };

int kl_patterns(void)
{
    return ROWS;
}

const struct kl_log_pattern *kl_pattern_at(int row)
{
    return row >= 0 && row < ROWS ? &table[row] : NULL;
}

const char *kl_source_name(enum kl_log_source source)
{
    static const char *const names[KL_SOURCES] = {
        [KL_SOURCE_NCCL] = "NCCL",           [KL_SOURCE_RCCL] = "RCCL",
        [KL_SOURCE_OFI] = "aws-ofi-nccl",    [KL_SOURCE_LIBFABRIC] = "libfabric",
        [KL_SOURCE_TCPX] = "GPUDirect-TCPX", [KL_SOURCE_FASTSOCKET] = "Fast Socket",
        [KL_SOURCE_SHARP] = "SHARP",         [KL_SOURCE_TESTS] = "nccl-tests",
        [KL_SOURCE_PYTORCH] = "PyTorch",     [KL_SOURCE_VLLM] = "vLLM",
        [KL_SOURCE_SYSTEM] = "the system",
    };

    return names[source];
}

/* ---- CUDA errors ---- */

static const struct {
    int number;
    const char *text;
} cuda_errors[] = {
    {1, "invalid argument"},
    {2, "out of memory"},
    {3, "initialization error"},
    {35, "driver version is insufficient"},
    {98, "invalid device function"},
    {100, "no CUDA-capable device"},
    {101, "invalid device ordinal"},
    {200, "device kernel image is invalid"},
    {201, "invalid device context"},
    {209, "no kernel image is available"},
    {214, "uncorrectable ECC error"},
    {217, "peer access is not supported"},
    {220, "uncorrectable NVLink error"},
    {222, "unsupported toolchain"},
    {304, "OS call failed"},
    {400, "invalid resource handle"},
    {401, "cannot be performed in the present state"},
    {500, "named symbol not found"},
    {700, "illegal memory access"},
    {702, "launch timed out"},
    {710, "device-side assert"},
    {714, "hardware stack error"},
    {715, "illegal instruction"},
    {716, "misaligned address"},
    {718, "invalid program counter"},
    {719, "unspecified launch failure"},
    {800, "operation not permitted"},
    {801, "operation not supported"},
    {802, "system not yet initialized"},
    {803, "unsupported display driver"},
    {804, "forward compatibility was attempted"},
    {999, "unknown error"},
};

/* "Cuda failure 101 'invalid device ordinal'", "CUDA error 401 '...'", "Test CUDA failure common.cu:516 '...'", "HIP failure '...'" */
static const char *after_cuda(const char *text)
{
    static const char *const heads[] = {"Cuda failure", "CUDA error", "CUDA failure", "HIP failure", "HIP error"};

    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        const char *at = strstr(text, heads[i]);

        if (at) return at + strlen(heads[i]) + strspn(at + strlen(heads[i]), " :");
    }
    return NULL;
}

static int cuda_error_of(const char *text)
{
    const char *at = after_cuda(text);

    if (!at) return 0;
    if (isdigit((unsigned char)*at)) {
        char *end;
        long number = strtol(at, &end, 10);

        if (number > 0 && number < 10000 && (*end == ' ' || *end == ',' || *end == 0)) return (int)number;
    }
    for (size_t i = 0; i < sizeof cuda_errors / sizeof cuda_errors[0]; i++)
        if (strstr(at, cuda_errors[i].text)) return cuda_errors[i].number;
    return -1;
}

/* ---- matching ---- */

static bool has_all(const char *text, const char *const word[KL_PATTERN_WORDS])
{
    for (int i = 0; i < KL_PATTERN_WORDS && word[i]; i++)
        if (!strstr(text, word[i])) return false;
    return true;
}

/* Does one of the parts, "|" between them, stand in the place? */
static bool has_part(const char *where, const char *parts)
{
    for (const char *at = parts; *at;) {
        size_t n = strcspn(at, "|");

        for (const char *w = where; *w; w++)
            if (!strncmp(w, at, n)) return true;
        at += n + (at[n] == '|');
    }
    return false;
}

static bool fits(const struct kl_log_pattern *p, const struct kl_log_message *m, int cuda)
{
    if (p->cuda > 0 ? cuda != p->cuda : p->cuda < 0 && !cuda) return false;
    if ((m->when & p->when) != p->when || (p->place && !has_part(m->where, p->place))) return false;
    if (m->release && ((p->since && m->release < p->since) || (p->until && m->release > p->until))) return false;
    if (!m->release && p->until) return false; /* a defect is named where the release is known */
    return has_all(m->text, p->word);
}

const struct kl_log_pattern *kl_pattern_of(const struct kl_log_message *m)
{
    const int cuda = cuda_error_of(m->text);

    for (int i = 0; i < ROWS; i++)
        if ((m->loud || !table[i].place) && fits(&table[i], m, cuda)) return &table[i];
    return NULL;
}

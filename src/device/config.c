/* SPDX-License-Identifier: Apache-2.0 */
#include "device/config.h"

static const char *const kinds[] = {"auto", "host", "cuda", NULL};
static const char *const movers[] = {"auto", "direct", "copy", "lines", "schedule", "nvls", NULL};
static const char *const spins[] = {"0", "1", "auto", NULL};

static const struct kl_param rows[] = {
    KL_PARAM_ENUM(struct kl_device_config, devices, "KOLO_DEVICES", KL_OWN, "auto", kinds,
                  "devices of this process: host, CPUs; cuda, GPUs; auto, GPUs if the program uses CUDA already"),
    KL_PARAM_ENUM(
        struct kl_device_config, cuda_mover, "KOLO_CUDA_MOVER", KL_HOST_ALIKE, "auto", movers,
        "data on GPUs move by kernels (direct), copy engines, lines, a schedule or nvls; auto: the best for each"),
    KL_PARAM_ENUM(struct kl_device_config, cuda_spin, "KOLO_CUDA_SPIN", KL_HOST_ALIKE, "0", spins,
                  "1: kernels of GPUs wait for each other, where that is legal; auto: if each process has one GPU"),
    KL_PARAM_SIZE(struct kl_device_config, cuda_lines, "KOLO_CUDA_LINES", KL_HOST_ALIKE, "32K", 1, 1 << 20,
                  "bytes of a rank for another that go in lines, at most, if kernels wait for each other"),
    KL_PARAM_INT(
        struct kl_device_config, cuda_threads, "KOLO_CUDA_THREADS", KL_OWN, "0", 64, 512,
        "threads of a block that follows a schedule or uses NVLS; 0: 512, or fewer where more blocks have to fit"),
    KL_PARAM_INT(struct kl_device_config, cuda_blocks, "KOLO_CUDA_BLOCKS", KL_OWN, "0", 1, 65535,
                 "thread blocks of a kernel on a GPU, at most; 0: four for each of its processors"),
    KL_PARAM_SIZE(struct kl_device_config, cuda_round, "KOLO_CUDA_ROUND", KL_ALIKE, "64M", 64, (int64_t)1 << 40,
                  "bytes of a rank's larger buffer that pass through host memory at a time, between hosts"),
    KL_PARAM_SIZE(struct kl_device_config, cuda_chunk, "KOLO_CUDA_CHUNK", KL_HOST_ALIKE, "2M", 4096, (int64_t)1 << 28,
                  "bytes of a rank that are in host memory at a time, between GPUs without P2P"),
    KL_PARAM_SIZE(struct kl_device_config, cuda_engines, "KOLO_CUDA_ENGINES", KL_HOST_ALIKE, "256K", 0,
                  (int64_t)1 << 40,
                  "bytes from which copy engines move data between GPUs without P2P; kernels move fewer"),
    KL_PARAM_SIZE(
        struct kl_device_config, cuda_rdma, "KOLO_CUDA_RDMA", KL_OWN, "4K", 4096, (int64_t)1 << 40,
        "bytes from which NICs read and write messages in memory of GPUs, where they can (NCCL_NET_GDR_LEVEL)"),
    KL_PARAM_BOOL(
        struct kl_device_config, dma_buf, "NCCL_DMABUF_ENABLE", KL_OWN, "1",
        "let NICs get at memory of GPUs by DMA-BUFs; 0: only by its addresses, where nvidia_peermem is loaded"),
    KL_PARAM_STRING(struct kl_device_config, cuda_library, "KOLO_CUDA_LIBRARY", KL_OWN, "",
                    "file with the code for GPUs; unset: libkolo-cuda.so.0 beside libkolo.so"),
    KL_PARAM_INT(
        struct kl_device_config, host_devices, "KOLO_HOST_DEVICES", KL_OWN, "0", 1, 4096,
        "CPU devices of this process; 0: the topology file's, else the job's ranks here, else the CPUs (at least 8)"),
    KL_PARAM_BOOL(struct kl_device_config, nvml, "KOLO_NVML", KL_SETTLED, "1",
                  "plan for the GPUs of this machine, if it has any, as NVML describes them; 0: for CPU devices"),
    KL_PARAM_SIZE(struct kl_device_config, device_memory, "KOLO_DEVICE_MEMORY", KL_OWN, "0", 1 << 20, (int64_t)1 << 46,
                  "memory of each GPU that the CUDA stand-in emulates; 0: this machine's, divided by the devices"),
};

const struct kl_param_set kl_device_param_set = KL_PARAM_SET("device", struct kl_device_config, rows);

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model.h - properties of GPUs by compute capability, or by PCI device number, that topologies do not have.
 *
 * Source: the stand-in's specification, 4.8; NVIDIA's data sheets.
 */
#ifndef KL_CUDA_MODEL_H
#define KL_CUDA_MODEL_H

struct kl_cuda_model {
    int sm;
    unsigned pci_device; /* 0: any of its compute capability */
    const char *name;
    unsigned memory_gib, processors, threads, blocks; /* threads and blocks of a multiprocessor */
    unsigned shared_kib, optin_kib;                   /* of a multiprocessor; of a block that asks for it */
    unsigned l2_mib, clock_mhz, memory_mhz, bus_bits;
    const char *brand;
};

/** The row of the PCI device number, else of the compute capability, else of the one below. Never NULL. */
const struct kl_cuda_model *kl_cuda_model(int sm, unsigned pci_device);

#endif

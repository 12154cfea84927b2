/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pcie.h - the generations of PCIe, and the bandwidth of a lane of each in plans.
 *
 * Source: the topology specification, 9.3.
 */
#ifndef KL_TOPO_PCIE_H
#define KL_TOPO_PCIE_H

enum { KL_PCIE_GENERATIONS = 6, KL_PCIE_ASSUMED = 3 /* where a speed is not known */ };

struct kl_pcie {
    const char *speed; /* "16.0 GT/s PCIe", as kernels write it */
    double rate;       /* the same as a number */
    int generation;
    int lane; /* 100 Mb/s of one lane */
};

/** A generation from 1 to KL_PCIE_GENERATIONS; NULL for others. */
const struct kl_pcie *kl_pcie_generation(int generation);

/** The generation of a speed, ignoring text after the unit, which differs between kernels; NULL if there is none. */
const struct kl_pcie *kl_pcie_of_speed(const char *speed);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * product.h - properties of GPUs and NICs by PCI vendor and device id.
 *
 * Two tables of plain data. A system's own list of PCI ids is not used: it is older than many GPUs, and has no NVLinks.
 *
 * Source:  the machine specification, 1 to 3.
 * Threads: const.
 */
#ifndef KL_TOPO_PRODUCT_H
#define KL_TOPO_PRODUCT_H

#include <stdbool.h>

enum { KL_PRODUCT_IDS = 6, KL_VENDOR_ID_NVIDIA = 0x10de, KL_VENDOR_ID_AMD = 0x1002 };

enum kl_form_factor {
    KL_FORM_CARD,   /* PCIe, without NVLink */
    KL_FORM_BRIDGE, /* PCIe; a bridge joins two or four cards, or none */
    KL_FORM_BOARD,  /* soldered or plugged onto a board that has NVLinks: SXM, superchips */
    KL_FORM_CHIP    /* a superchip that may stand alone */
};

struct kl_gpu_product {
    const char *name;
    int device[KL_PRODUCT_IDS]; /* PCI device ids; 0 where there are no more */
    int sm;
    enum kl_form_factor form;
    int links;     /* NVLinks of one GPU, where all are connected */
    bool switched; /* to NVSwitches; else to other GPUs */
    int pcie;      /* generation of its x16 link */
    bool c2c;      /* joined with its CPU */
};

/** The product behind the ids of a GPU; NULL if it is not in the table. */
const struct kl_gpu_product *kl_gpu_product_of(int vendor, int device);

/** The product with this name; NULL if there is none. */
const struct kl_gpu_product *kl_gpu_product_named(const char *name);

/** The best match of a driver's name: "NVIDIA H100 80GB HBM3". NULL if it is not in the table. */
const struct kl_gpu_product *kl_gpu_product_like(const char *name);

/** sm of such a name, also of products that are not in the table; 0: not known. */
int kl_gpu_sm_like(const char *name);

/** How a NIC is driven, which decides the attributes of its nets in NCCL. */
enum kl_nic_kind {
    KL_NIC_INFINIBAND,
    KL_NIC_ROCE,
    KL_NIC_EFA,
    KL_NIC_SLINGSHOT,
    KL_NIC_SOCKETS,
    KL_NIC_TCPX,
    KL_NIC_KINDS
};

struct kl_nic_traits {
    const char *pci_class, *vendor, *device; /* as documents write them */
    float latency_us;                        /* that its plugin tells */
    int max_comms;
    bool gdr;
};
extern const struct kl_nic_traits kl_nic_traits[KL_NIC_KINDS];

struct kl_nic_product {
    const char *name;
    int vendor, device, gbps;
    enum kl_nic_kind kind; /* in Ethernet mode, where a card has two */
};

/** The product behind the ids of a NIC; NULL if it is not in the table. */
const struct kl_nic_product *kl_nic_product_of(int vendor, int device);

/** The product with the longest name that stands in a text: "ConnectX-6 Dx" before "ConnectX-6"; NULL without. */
const struct kl_nic_product *kl_nic_product_like(const char *text);

/** GB/s of one XGMI link of an AMD GPU whose <gpu> element has this `gcn`: "908", "gfx942". 0 for unknown ones. */
float kl_xgmi_bw(const char *gcn);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * machine.h - from the description of a host to the topology that a rank works with: the whole chain.
 *
 *     kl_machine_document   facts or file -> one fused document, as NCCL_TOPO_DUMP_FILE shows it
 *     kl_machine_topo       document -> graph -> paths -> trim -> paths; also in two calls, for a process that receives
 *                           the document from another one
 *
 * As in NCCL, each local rank contributes its own GPU and all NETs, and the contributions are fused in rank order:
 * this order fixes the order of nodes and links, and so every later tie.
 *
 * Source: the topology specification, 6 to 8; the architecture page, 4.
 */
#ifndef KL_TOPO_MACHINE_H
#define KL_TOPO_MACHINE_H

#include "topo/assume.h"
#include "topo/facts.h"
#include "topo/topo.h"

enum { KL_MACHINE_MAX_GPUS = 4096 }; /* of a document: more would have more paths than fit */

/** Fused document of the machine, ready for kl_topo_build or kl_xml_write. */
ncclResult_t kl_machine_document(const struct kl_machine *machine, const struct kl_topo_options *options,
                                 struct kl_xml **xml);

/**
 * The graph of a document of kl_machine_document, possibly of another process: paths computed once, nothing trimmed. Only
 * the devices and GPUs of `machine` are used; each must be in the document.
 */
ncclResult_t kl_machine_graph(const struct kl_machine *machine, const struct kl_xml *document,
                              const struct kl_topo_options *options, struct kl_topo **topo);

/** Trim to the nodes that `rank` of a communicator of `nranks` reaches without the network. On failure free it. */
ncclResult_t kl_machine_trim(struct kl_topo **topo, int rank, int nranks);

/** The whole machine: document and graph, for tools; `document` as below. */
ncclResult_t kl_machine_whole(const struct kl_machine *machine, const struct kl_topo_options *options,
                              struct kl_topo **topo, struct kl_xml **document);

/**
 * The system that `rank` of a communicator of `nranks` works with. `document` (may be NULL) receives the fused
 * document; free it. The topology is trimmed to the nodes that the rank reaches without the network.
 */
ncclResult_t kl_machine_topo(const struct kl_machine *machine, const struct kl_topo_options *options, int rank,
                             int nranks, struct kl_topo **topo, struct kl_xml **document);

/* ---- files that describe machines ---- */

/**
 * Load a topology file. A file that gives only the places of devices is completed (placement.h); `assumed` (may be NULL)
 * receives the assumptions. `machine` names the file's machine ("dgx-h100"), NULL or "" if unknown; without a path it is
 * the machine to load. ncclInvalidUsage for an unknown name, and if GPUs cannot be identified. The caller frees it.
 */
ncclResult_t kl_machine_load(const char *path, const char *machine, struct kl_assumed *assumed, struct kl_xml **file);

/** The same of a text in memory; `label` names it in errors, and the document. */
ncclResult_t kl_machine_parse(const char *label, const char *text, size_t bytes, const char *machine,
                              struct kl_assumed *assumed, struct kl_xml **file);

/**
 * The same for a communicator, with NCCL_TOPO_FILE and KOLO_MACHINE. A file that cannot be read, or without GPUs that can be
 * identified, causes a warning and leaves *file NULL; two empty strings do so silently. Malformed text is ncclInternalError,
 * another version ncclInvalidUsage. Assumptions are logged, and noted in `assumed` (may be NULL). The caller frees it.
 */
ncclResult_t kl_machine_read_file(const char *path, const char *machine, struct kl_assumed *assumed,
                                  struct kl_xml **file);

/** Number of GPUs: the devices that a file provides. */
int kl_machine_file_gpus(const struct kl_xml *file);

/** Can host devices emulate the machine: version 1, with GPUs, but not too many? Else ncclInvalidUsage. */
ncclResult_t kl_machine_check_file(const struct kl_xml *file);

/** Does the file hold cpus of several hosts, told apart by numbers? They then share one NVLink domain. */
bool kl_machine_file_multihost(const struct kl_xml *file);

/** How many hosts have GPUs in a file; at least 1. */
int kl_machine_file_hosts(const struct kl_xml *file);

/**
 * Give every element the missing attributes that results depend on: cpu arch x86_64, vendor GenuineIntel, family 6,
 * model 85, numaid 0; gpu sm 80, gdr 1, dev = order; net dev = order if no net has one; pci link speed and width
 * empty (8 GT/s x16). Assigns ranks 0, 1, ... to the GPUs: ordered by distinct `rank`s, else by `dev`, else by document
 * order. `elem`, if not NULL, receives the gpu elements in this order (kl_machine_file_gpus of them).
 */
ncclResult_t kl_machine_complete(struct kl_xml *file, int *elem);

/* ---- this machine ---- */

/** NUMA nodes below a sysfs root, ascending; at least one (0). Returns how many, at most `max`. */
int kl_machine_numa_nodes(const char *sysfs, int *node, int max);

/** Facts about this machine's processors. */
void kl_cpu_facts_read(struct kl_cpu_facts *cpu);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * input.h - the kind of a text, by its content: topologies, logs, tables, dumps, and texts that describe networks.
 *
 * A kind follows from the first bytes and from lines that only such texts have, never from a file's name. A text may hold a log and
 * a table.
 *
 * Bounds:  the first KL_INPUT_BYTES bytes decide.
 * Threads: pure.
 */
#ifndef KL_TOPO_INPUT_H
#define KL_TOPO_INPUT_H

#include <stdbool.h>
#include <stddef.h>

enum { KL_INPUT_BYTES = 4 << 20 };

enum kl_input_kind {
    KL_INPUT_UNKNOWN,
    KL_INPUT_EMPTY,
    KL_INPUT_COMPRESSED,
    KL_INPUT_TOPOLOGY,   /* NCCL's XML: <system> */
    KL_INPUT_GRAPH,      /* NCCL's XML: <graphs> */
    KL_INPUT_XML,        /* any other */
    KL_INPUT_SMI,        /* nvidia-smi topo -m */
    KL_INPUT_SMI_NAMES,  /* other text of nvidia-smi: products and links, no matrix */
    KL_INPUT_LSPCI,      /* lspci -t */
    KL_INPUT_LOG,        /* of NCCL, RCCL, their plugins, PyTorch's watchdogs, the kernel */
    KL_INPUT_TABLE,      /* nccl-tests, rccl-tests */
    KL_INPUT_TABLE_JSON, /* nccl-tests -J */
    KL_INPUT_FLIGHT,     /* a flight record of PyTorch: pickle or JSON */
    KL_INPUT_KOLO_FLIGHT,
    KL_INPUT_RAS, /* a status of NCCL's RAS service: JSON */
    KL_INPUT_RAS_TEXT,
    KL_INPUT_INSPECTOR,     /* reports of NCCL's Inspector: JSON, one per line */
    KL_INPUT_OTLP,          /* metrics of OpenTelemetry: JSON */
    KL_INPUT_TRACE,         /* a trace: {"traceEvents": ...} */
    KL_INPUT_CHAKRA,        /* an execution trace of MLCommons' Chakra: JSON */
    KL_INPUT_CHAKRA_BINARY, /* the same as Protocol Buffers */
    KL_INPUT_EXECUTION,     /* an execution trace of PyTorch: JSON */
    KL_INPUT_JSON,          /* any other */
    KL_INPUT_SLURM,         /* topology.conf, topology.yaml */
    KL_INPUT_TOPOGRAPH,     /* labels or YAML of topograph */
    KL_INPUT_KINDS
};

struct kl_input {
    enum kl_input_kind kind;
    bool table; /* a log that also holds rows of a table */
};

struct kl_input kl_input_of(const char *text, size_t bytes);

/** "a log of NCCL" */
const char *kl_input_name(enum kl_input_kind kind);

/** How to use a text of this kind, a sentence without its full stop; NULL: it is of no use here. */
const char *kl_input_use(enum kl_input_kind kind);

/** Does it name switches between hosts (plan/switches.h)? */
static inline bool kl_input_is_switches(enum kl_input_kind kind)
{
    return kind == KL_INPUT_SLURM || kind == KL_INPUT_TOPOGRAPH;
}

/** Does it describe a machine? */
static inline bool kl_input_is_machine(enum kl_input_kind kind)
{
    return kind == KL_INPUT_TOPOLOGY || kind == KL_INPUT_SMI || kind == KL_INPUT_LSPCI;
}

#endif

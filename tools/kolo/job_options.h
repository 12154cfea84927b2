/* SPDX-License-Identifier: Apache-2.0 */
/** job_options.h - help texts of options that plans and all commands that start ranks share. */
#ifndef KOLO_TOOL_JOB_OPTIONS_H
#define KOLO_TOOL_JOB_OPTIONS_H

#include "topo/release.h"

#define KL_JOB_LINK_RATE_DOC                                                                                           \
    "with --netns: bandwidth of each host's link in each direction, in bits per second, e.g. 100M or 25G (default: "   \
    "no limit)"
#define KL_JOB_TOPO_DOC "emulate the machine that this NCCL topology XML describes"
#define KL_JOB_MACHINE_DOC                                                                                             \
    "emulate this known machine, e.g. dgx-h100 (kolo topo --machines); with --topo: the machine of FILE"
#define KL_RELEASE_DOC                                                                                                 \
    "follow the rules of this release of NCCL (KOLO_NCCL_VERSION), e.g. 2.29.7 or 2.29 "                               \
    "(default: " KL_NCCL_DEFAULT_TEXT ")"

#endif

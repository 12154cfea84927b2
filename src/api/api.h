/* SPDX-License-Identifier: Apache-2.0 */
/**
 * api.h - how a public function is defined: strong under its pnccl name, weak under its own.
 *
 * A tool may so replace ncclX and call pncclX; both reach the same body.
 */
#ifndef KL_API_API_H
#define KL_API_API_H

#define KL_PUBLIC __attribute__((visibility("default")))

/** Define pnccl<name>; follow with the body. */
#define KL_API(type, name, params)                                                                                     \
    KL_PUBLIC __attribute__((weak, alias("pnccl" #name))) type nccl##name params;                                      \
    KL_PUBLIC type pnccl##name params

#endif

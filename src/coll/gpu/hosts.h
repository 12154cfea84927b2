/* SPDX-License-Identifier: Apache-2.0 */
/**
 * hosts.h - the ranks of a process in a communicator on GPUs of several hosts: the order in which their rounds are put on
 * the GPUs.
 *
 * A stream that waits for the engine may hold back other streams of its GPU. So a round's way back is put on the GPU when
 * the data of all ranks of this process that the round needs are on their way: of a collective all ranks', of messages the
 * other sides'. No wait of this process is then in front of work that it needs; in a graph of several ranks neither.
 *
 * Blocking: kl_gpu_hosts_wait waits for calls of ranks of this process, not for other processes, and not for GPUs.
 * Errors:   a failure of CUDA fails all: calls that wait, and later ones.
 * Threads:  one for each rank at a time. Any thread may submit the rounds of another one's rank.
 */
#ifndef KL_COLL_GPU_HOSTS_H
#define KL_COLL_GPU_HOSTS_H

#include "coll/gpu/gate.h"

struct kl_gpu_hosts;

/** Ranks at these places; ranks of this process have a device. Each takes a reference, and the last to leave frees it. */
ncclResult_t kl_gpu_hosts_create(const struct kl_gpu_place *place, int nranks, struct kl_gpu_hosts **hosts);
void kl_gpu_hosts_ref(struct kl_gpu_hosts *hosts);

/** As kl_gpu_team_leave. */
bool kl_gpu_hosts_leave(struct kl_gpu_hosts *hosts, bool failed, const char *text);

/** The communicator has failed: streams do not wait any longer. Any thread. */
void kl_gpu_hosts_release(struct kl_gpu_hosts *hosts);

/** A rank of this process. */
struct kl_gpu_gate *kl_gpu_hosts_gate(const struct kl_gpu_hosts *hosts, int rank);

/** A thread speaks for a rank, until another one calls for it. */
void kl_gpu_hosts_note_caller(struct kl_gpu_hosts *hosts, int rank, const void *thread);

/** As kl_gpu_check. */
ncclResult_t kl_gpu_hosts_check(const struct kl_gpu_hosts *hosts, struct kl_gpu_call *call);

/** Number the rounds of a call that is not captured. */
void kl_gpu_hosts_number(struct kl_gpu_hosts *hosts, int rank, struct kl_gpu_rounds *rounds);

/**
 * Its rounds of collectives, or of messages, may be put on the GPU, or into the graph that its streams `capture`. The
 * rounds stay until kl_gpu_hosts_wait has returned.
 */
void kl_gpu_hosts_arrive(struct kl_gpu_hosts *hosts, int rank, struct kl_gpu_rounds *rounds, uint64_t capture,
                         bool messages);

/** Wait until they are. The rest as kl_gpu_wait. */
ncclResult_t kl_gpu_hosts_wait(struct kl_gpu_hosts *hosts, int rank, _Atomic uint32_t *stop,
                               const struct kl_gpu_limits *limits);

#endif

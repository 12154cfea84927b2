/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gate.h - between a rank's GPU and the engine of hosts: a stage in pinned host memory, and two words.
 *
 * Of each round, one stream copies the rank's data to the stage, then a host function counts `arrived`: the engine may
 * begin. When it has ended, it writes the round's number to `reached`, for which a second stream waits before it copies
 * the results. So nothing waits on the CPU for a stream.
 *
 * Graphs:   a captured call is on the program's first stream, with a stage of its graph's, and words of its own (notice.h).
 *           Once there are graphs, other calls give notices as well.
 * Failure:  kl_gpu_gate_release ends all waits of streams, for ever. A released gate stays until its streams have ended,
 *           and is freed when another one is made or freed after that; with graphs it stays for good.
 * Threads:  kl_gpu_gate_has_arrived, _tell, _check, _release, _unhold: any; the others one at a time.
 */
#ifndef KL_COLL_GPU_GATE_H
#define KL_COLL_GPU_GATE_H

#include "coll/gpu/notice.h"
#include "device/cuda/context.h"

#include <stdalign.h>

enum { KL_GPU_SLOTS = 2 };

struct kl_gpu_gate_stage;

struct kl_gpu_gate {
    const struct kl_cuda_context *context;
    int rank, nranks;
    kl_cu_stream in, out;
    kl_cu_stream captured;           /* in their place, for a call that is captured; NULL: it is not */
    kl_cu_event ready;               /* the program's streams have come to the call */
    kl_cu_event departed;            /* the last round's data are on the stage */
    kl_cu_event back[KL_GPU_SLOTS];  /* the results of the last round in each slot are in the program's memory */
    kl_cu_event last;                /* of these: of the last round; NULL: there was none */
    kl_cu_event end;                 /* of the call */
    struct kl_gpu_gate_stage *stage; /* newest first */
    _Atomic uint32_t *reached;
    uint64_t reached_at;      /* as the GPU sees it */
    struct kl_gpu_gate *next; /* among released gates */
    struct kl_gpu_notices notices;
    _Atomic uint32_t held; /* rounds whose data NICs move from and into the program's memory */
    _Atomic uint32_t to_release;
    alignas(KL_LINE) _Atomic uint32_t arrived;
};

ncclResult_t kl_gpu_gate_create(int device, int rank, int nranks, struct kl_gpu_gate **gate);

/** Unless it was `released`, its streams have ended. */
void kl_gpu_gate_free(struct kl_gpu_gate *gate, bool released);

/** A stage of so many bytes, for a graph or, 0, for calls. ncclUnhandledCudaError, ncclSystemError: there is no memory. */
ncclResult_t kl_gpu_gate_reserve(struct kl_gpu_gate *gate, size_t bytes, uint64_t capture, char **stage);

/** Mark the call's place on the program's streams; and let them go on when it has ended. */
ncclResult_t kl_gpu_gate_begin(struct kl_gpu_gate *gate, const struct kl_gpu_call *call);
ncclResult_t kl_gpu_gate_end(struct kl_gpu_gate *gate, const struct kl_gpu_call *call);

/** In a graph: the way back of this rank comes behind the other one's way to the stage. */
ncclResult_t kl_gpu_gate_follow(const struct kl_gpu_gate *gate, const struct kl_gpu_gate *other);

/** Put a round's way to the stage on the GPU, and its way back. */
ncclResult_t kl_gpu_gate_depart(struct kl_gpu_gate *gate, const struct kl_gpu_rounds *rounds,
                                const struct kl_gpu_round *round);
ncclResult_t kl_gpu_gate_return(struct kl_gpu_gate *gate, const struct kl_gpu_rounds *rounds,
                                const struct kl_gpu_round *round);

/** For the engine: are the round's data on the stage? Its results are. */
static inline bool kl_gpu_gate_has_arrived(struct kl_gpu_gate *gate, uint64_t number)
{
    return (int32_t)(kl_load_acquire(&gate->arrived) - (uint32_t)number) >= 0; /* pairs with the host function */
}
void kl_gpu_gate_tell(struct kl_gpu_gate *gate, uint64_t number);

/** Has CUDA lost the way to the stage? Then ncclUnhandledCudaError: no more data will arrive. */
ncclResult_t kl_gpu_gate_check(const struct kl_gpu_gate *gate);

/** No stream waits any longer; while rounds are held, from the end of the last of them on. */
void kl_gpu_gate_release(struct kl_gpu_gate *gate);

/** From now on a NIC uses the program's memory for a round, until the engine has ended it, or nothing touches it any more. */
void kl_gpu_gate_hold(struct kl_gpu_gate *gate);
void kl_gpu_gate_unhold(struct kl_gpu_gate *gate);

/** The engine does nothing any more, and no NIC uses the program's memory: no round is held. */
void kl_gpu_gate_settle(struct kl_gpu_gate *gate);

/** Wait for its streams. */
ncclResult_t kl_gpu_gate_synchronize(const struct kl_gpu_gate *gate);

#endif

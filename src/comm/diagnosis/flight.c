/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/diagnosis/flight.h"

#include "base/error.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Zeroed pages that are allocated at first write. */
ncclResult_t kl_flight_create(struct kl_flight **flight)
{
    struct kl_flight *f = mmap(NULL, sizeof *f, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (f == MAP_FAILED) return KL_NOMEM("the flight recorder");
    kl_ticks_begin();
    kl_store_relaxed(&f->waits_for, -1);
    *flight = f;
    return ncclSuccess;
}

void kl_flight_free(struct kl_flight *flight)
{
    if (flight) munmap(flight, sizeof *flight);
}

static uint8_t byte_of(uint64_t what, int which)
{
    return (uint8_t)(what >> (8 * which));
}

bool kl_flight_read(struct kl_flight *f, uint64_t number, struct kl_flight_op *op)
{
    struct kl_flight_record *r = kl_flight_record_of(f, number - 1);

    if (kl_load_acquire(&r->number) != number) return false; /* pairs with kl_flight_issue */
    uint64_t ended = kl_load_relaxed(&f->ended), begun = kl_load_relaxed(&f->begun);
    uint64_t what = kl_load_acquire(&r->what), who = kl_load_acquire(&r->who);
    *op = (struct kl_flight_op){
        .number = number,
        .collective = who >> 32,
        .state = number <= ended   ? KL_FLIGHT_ENDED
                 : number <= begun ? KL_FLIGHT_RUNNING
                                   : KL_FLIGHT_QUEUED,
        .func = byte_of(what, 0),
        .peer = (int32_t)(uint32_t)who,
        .type = (ncclDataType_t)byte_of(what, 1),
        .op = byte_of(what, 2),
        .algorithm = byte_of(what, 3),
        .way = (uint8_t)byte_of(what, 6),
        .proto = byte_of(what, 4),
        .channels = byte_of(what, 5),
        .count = kl_load_acquire(&r->count),
        .stream = kl_load_acquire(&r->stream),
        .issued = kl_load_acquire(&r->issued),
        .begun = kl_load_acquire(&r->begun),
        .ended = kl_load_acquire(&r->ended),
    };
    return kl_load_relaxed(&r->number) == number && op->func < KL_FUNC_ROWS;
}

uint64_t kl_flight_issued(struct kl_flight *f)
{
    uint64_t n = 0;

    for (int func = 0; func < KL_FUNC_ROWS; func++) n += kl_load_relaxed(&f->issued[func]);
    return n;
}

/* ---- times ---- */

/* Some may have been overwritten already, in a group larger than the recorder. */
static void time_all(struct kl_flight *f, uint64_t first, uint64_t end, size_t field)
{
    uint64_t now = kl_ticks();

    for (uint64_t i = first; i < end; i++) {
        struct kl_flight_record *r = kl_flight_record_of(f, i);
        if (kl_load_relaxed(&r->number) == i + 1) kl_store_release((_Atomic uint64_t *)((char *)r + field), now);
    }
}

void kl_flight_time_begin(struct kl_flight *f, uint64_t first, uint64_t end)
{
    time_all(f, first, end, offsetof(struct kl_flight_record, begun));
}

void kl_flight_time_end(struct kl_flight *f, uint64_t first, uint64_t end)
{
    time_all(f, first, end, offsetof(struct kl_flight_record, ended));
}

/* In a group of more operations than there are records it may be another one's by now. */
void kl_flight_way(struct kl_flight *f, uint64_t number, uint8_t way)
{
    struct kl_flight_record *r = kl_flight_record_of(f, number);

    if (kl_load_relaxed(&r->number) == number + 1)
        kl_store_release(&r->what, kl_load_relaxed(&r->what) | (uint64_t)way << 48);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/record.h"

#include "bootstrap/wire.h"

#include <stdio.h>
#include <string.h>

/* A text of at most `room` bytes, zero included, with unprintable characters replaced. */
static void get_text(struct kl_reader *r, char *text, size_t bytes, size_t room)
{
    if (bytes >= room) r->bad = true;
    if (r->bad) bytes = 0;
    kl_get_bytes(r, text, bytes);
    text[bytes] = 0;
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
}

/* ---- address record ---- */

static void put_record(struct kl_writer *w, const struct kl_address_record *record)
{
    char host[KL_HOST_TEXT] = "";

    snprintf(host, sizeof host, "%s", record->host);
    kl_put_u32(w, (uint32_t)record->rank);
    kl_put_u64(w, record->pid);
    kl_put_bytes(w, host, sizeof host);
    for (int i = 0; i < KL_ADDRESSES; i++) {
        unsigned char wire[KL_ADDRESS_WIRE] = {0};
        if (i < record->naddresses) kl_address_pack(&record->address[i], wire);
        kl_put_bytes(w, wire, sizeof wire);
    }
}

static void get_address(struct kl_reader *r, struct kl_address_record *record)
{
    unsigned char wire[KL_ADDRESS_WIRE];
    union kl_address address;

    kl_get_bytes(r, wire, sizeof wire);
    if (!kl_address_unpack(wire, &address))
        r->bad = true;
    else if (!kl_address_is_none(&address))
        record->address[record->naddresses++] = address;
}

static void get_record(struct kl_reader *r, struct kl_address_record *record)
{
    char host[KL_HOST_TEXT];

    memset(record, 0, sizeof *record);
    uint32_t rank = kl_get_u32(r);
    if (rank >= KL_MAX_RANKS) r->bad = true;
    record->rank = (int)(rank % KL_MAX_RANKS);
    record->pid = kl_get_u64(r);
    kl_get_bytes(r, host, sizeof host);
    struct kl_reader text = kl_reader_on(host, sizeof host);
    get_text(&text, record->host, strnlen(host, sizeof host), sizeof record->host);
    r->bad |= text.bad;
    for (int i = 0; i < KL_ADDRESSES; i++) get_address(r, record);
}

void kl_address_record_encode(const struct kl_address_record *record, unsigned char wire[KL_ADDRESS_RECORD_WIRE])
{
    struct kl_writer w = kl_writer_on(wire, KL_ADDRESS_RECORD_WIRE);

    put_record(&w, record);
}

bool kl_address_record_decode(const unsigned char wire[KL_ADDRESS_RECORD_WIRE], struct kl_address_record *record)
{
    struct kl_reader r = kl_reader_on(wire, KL_ADDRESS_RECORD_WIRE);

    get_record(&r, record);
    return !r.bad;
}

/* ---- announce ---- */

void kl_announce_encode(const struct kl_announce *announce, unsigned char wire[KL_ANNOUNCE_WIRE])
{
    struct kl_writer w = kl_writer_on(wire, KL_ANNOUNCE_WIRE);

    kl_put_u32(&w, (uint32_t)announce->nranks);
    kl_put_u32(&w, announce->library);
    kl_put_u64(&w, announce->timeout_ms);
    put_record(&w, &announce->record);
}

bool kl_announce_decode(const void *wire, size_t bytes, struct kl_announce *announce)
{
    struct kl_reader r = kl_reader_on(wire, bytes);

    uint32_t nranks = kl_get_u32(&r);
    announce->library = kl_get_u32(&r);
    announce->timeout_ms = kl_get_u64(&r);
    get_record(&r, &announce->record);
    if (r.bad || r.at != r.end || !nranks || nranks > KL_MAX_RANKS) return false;
    announce->nranks = (int)nranks;
    return announce->record.rank < announce->nranks && announce->record.naddresses;
}

/* ---- introduction ---- */

static void put_placement(struct kl_writer *w, const struct kl_placement *l)
{
    kl_put_u32(w, (uint32_t)l->process);
    kl_put_u32(w, (uint32_t)l->nprocesses);
    kl_put_u32(w, (uint32_t)l->place);
    kl_put_u32(w, (uint32_t)l->nmembers);
}

static int get_below(struct kl_reader *r, uint32_t end)
{
    uint32_t value = kl_get_u32(r);

    if (value >= end) r->bad = true;
    return r->bad ? 0 : (int)value;
}

static void get_placement(struct kl_reader *r, struct kl_placement *l)
{
    l->process = get_below(r, KL_MAX_RANKS);
    l->nprocesses = get_below(r, KL_MAX_RANKS + 1);
    l->place = get_below(r, KL_MAX_RANKS);
    l->nmembers = get_below(r, KL_MAX_RANKS + 1);
    if (l->process >= l->nprocesses || l->place >= l->nmembers) r->bad = true;
}

void kl_introduction_encode(const struct kl_introduction *introduction, unsigned char *wire)
{
    int nrecords = introduction->npartners + introduction->nleaders;
    struct kl_writer w = kl_writer_on(wire, KL_INTRODUCTION_WIRE(nrecords));

    kl_put_bytes(&w, introduction->session, KL_SESSION);
    put_placement(&w, &introduction->placement);
    kl_put_u32(&w, (uint32_t)introduction->npartners);
    kl_put_u32(&w, (uint32_t)introduction->nleaders);
    for (int i = 0; i < nrecords; i++) put_record(&w, &introduction->partner[i]);
}

bool kl_introduction_decode(const void *wire, size_t bytes, struct kl_introduction *introduction)
{
    struct kl_reader r = kl_reader_on(wire, bytes);

    kl_get_bytes(&r, introduction->session, KL_SESSION);
    get_placement(&r, &introduction->placement);
    introduction->npartners = get_below(&r, KL_MAX_PARTNERS + 1);
    introduction->nleaders = get_below(&r, KL_MAX_PARTNERS + 1);
    int n = introduction->npartners + introduction->nleaders;
    if (r.bad || bytes != KL_INTRODUCTION_WIRE(n)) return false;
    for (int i = 0; i < n; i++) get_record(&r, &introduction->partner[i]);
    return !r.bad;
}

/* ---- notice ---- */

size_t kl_notice_encode(const struct kl_notice *notice, unsigned char wire[KL_NOTICE_WIRE_MAX])
{
    struct kl_writer w = kl_writer_on(wire, KL_NOTICE_WIRE_MAX);
    size_t bytes = strnlen(notice->text, sizeof notice->text - 1);

    kl_put_u32(&w, (uint32_t)notice->culprit);
    kl_put_u32(&w, (uint32_t)notice->code);
    kl_put_bytes(&w, notice->text, bytes);
    return (size_t)(w.at - wire);
}

bool kl_notice_decode(const void *wire, size_t bytes, struct kl_notice *notice)
{
    struct kl_reader r = kl_reader_on(wire, bytes);

    uint32_t culprit = kl_get_u32(&r), code = kl_get_u32(&r);
    if (r.bad || (culprit >= KL_MAX_RANKS && culprit != UINT32_MAX)) return false;
    if (code == ncclSuccess || code >= ncclInProgress) return false;
    notice->culprit = culprit == UINT32_MAX ? -1 : (int)culprit;
    notice->code = (ncclResult_t)code;
    get_text(&r, notice->text, (size_t)(r.end - r.at), sizeof notice->text);
    return !r.bad;
}

/* SPDX-License-Identifier: Apache-2.0 */
/** read.c - texts of all formats into a record. */
#include "logs/record/make.h"

#include "base/error.h"

/* One row per format. */
static const struct {
    enum kl_input_kind kind;
    ncclResult_t (*add)(struct kl_record *, int file, const char *text, size_t bytes);
} readers[] = {
    {KL_INPUT_FLIGHT, kl_record_add_torch},
    {KL_INPUT_KOLO_FLIGHT, kl_record_add_kolo},
    {KL_INPUT_RAS, kl_record_add_ras},
    {KL_INPUT_RAS_TEXT, kl_record_add_ras_text},
    {KL_INPUT_INSPECTOR, kl_record_add_inspector},
    {KL_INPUT_OTLP, kl_record_add_otlp},
    {KL_INPUT_TRACE, kl_record_add_kineto},
    {KL_INPUT_CHAKRA, kl_record_add_chakra},
    {KL_INPUT_EXECUTION, kl_record_add_execution},
};

static int reader_of(enum kl_input_kind kind)
{
    for (int i = 0; i < (int)(sizeof readers / sizeof readers[0]); i++)
        if (readers[i].kind == kind) return i;
    return -1;
}

bool kl_record_reads(enum kl_input_kind kind)
{
    return reader_of(kind) >= 0;
}

ncclResult_t kl_record_add(struct kl_record *r, const char *name, const char *text, size_t bytes)
{
    const enum kl_input_kind kind = kl_input_of(text, bytes).kind;
    const int reader = reader_of(kind);
    int file;

    if (reader < 0 && kl_input_use(kind))
        return KL_FAIL(ncclInvalidUsage, "%s is %s, and no record of calls; %s", name, kl_input_name(kind),
                       kl_input_use(kind));
    if (reader < 0)
        return KL_FAIL(ncclInvalidUsage, "%s is %s, and no record of calls: give files of one kind together", name,
                       kl_input_name(kind));
    if (r->nfile && r->file[0].kind != kind)
        return KL_FAIL(ncclInvalidUsage, "%s is %s, but %s is %s: give files of one kind together", name,
                       kl_input_name(kind), r->file[0].name, kl_input_name(r->file[0].kind));
    KL_TRY(kl_record_new_file(r, name, kind, &file));
    return readers[reader].add(r, file, text, bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * parameters.c - the settings in force, for programs: NCCL's parameter functions, over the tables of all modules.
 */
#include "base/threadtext.h"
#include "api/api.h"
#include "api/param_sets.h"
#include "base/error.h"
#include "base/log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A handle is the row itself: it is looked up, never dereferenced. */
static const struct kl_param *row_of(ncclParamHandle_t handle, const struct kl_param_set **of)
{
    for (const struct kl_param_set *const *set = kl_param_registry.sets; *set; set++)
        for (size_t i = 0; i < (*set)->nparams; i++)
            if ((const void *)&(*set)->params[i] == (const void *)handle) {
                *of = *set;
                return &(*set)->params[i];
            }
    return NULL;
}

/* ---- values ---- */

/* A value in force: as text, and as its field holds it. */
struct value {
    const struct kl_param *row;
    char text[KL_PARAM_TEXT];
    int64_t number; /* for all types but strings */
};

static int64_t number_in(const struct kl_param *p, const char *field)
{
    int64_t wide;
    uint32_t bits;
    int choice;
    bool yes;

    switch (p->type) {
    case KL_PARAM_TYPE_BOOL:
        return memcpy(&yes, field, sizeof yes), yes;
    case KL_PARAM_TYPE_ENUM:
        return memcpy(&choice, field, sizeof choice), choice;
    case KL_PARAM_TYPE_LIST:
        return memcpy(&bits, field, sizeof bits), bits;
    case KL_PARAM_TYPE_STRING:
        return 0;
    default:
        return memcpy(&wide, field, sizeof wide), wide;
    }
}

static ncclResult_t read_value(ncclParamHandle_t handle, const char *function, struct value *value)
{
    const struct kl_param_set *set;
    struct kl_setting setting = {0};

    value->row = row_of(handle, &set);
    if (!value->row)
        return KL_FAIL(ncclInvalidArgument, "%s: %p is no handle of ncclParamBind", function, (const void *)handle);
    char *config = calloc(1, set->config_bytes);
    if (!config) return KL_NOMEM("a parameter");
    enum kl_param_state state = kl_param_load_row(value->row, config, kl_settings_process(), &setting);
    value->number = number_in(value->row, config + value->row->offset);
    snprintf(value->text, sizeof value->text, "%s",
             kl_param_shown(value->row, state == KL_PARAM_IS_SET ? setting.text : value->row->dfl));
    free(config);
    return ncclSuccess;
}

KL_PNCCL(ncclParamBind);
ncclResult_t ncclParamBind(ncclParamHandle_t *out, const char *key)
{
    const struct kl_param *row = key ? kl_param_find(&kl_param_registry, key) : NULL;

    if (!out) return KL_FAIL(ncclInvalidArgument, "ncclParamBind: the result pointer is NULL");
    *out = NULL;
    if (!row)
        return KL_FAIL(ncclInvalidArgument, "ncclParamBind: there is no parameter %s; `kolo env` lists them",
                       key ? key : "NULL");
    *out = (ncclParamHandle_t)(uintptr_t)row;
    return ncclSuccess;
}

/* ---- numbers ---- */

static ncclResult_t read_number(ncclParamHandle_t handle, const char *function, const void *out, int64_t min,
                                int64_t max, int64_t *number)
{
    struct value value;

    if (!out) return KL_FAIL(ncclInvalidArgument, "%s: the result pointer is NULL", function);
    KL_TRY(read_value(handle, function, &value));
    if (value.row->type == KL_PARAM_TYPE_STRING)
        return KL_FAIL(ncclInvalidArgument, "%s: %s is a text", function, value.row->name);
    if (value.number < min || value.number > max)
        return KL_FAIL(ncclInvalidArgument, "%s: %s is %" PRId64 ", which does not fit", function, value.row->name,
                       value.number);
    *number = value.number;
    return ncclSuccess;
}

#define GETTER(name, type, min, max)                                                                                   \
    KL_PNCCL(name);                                                                                                    \
    ncclResult_t name(ncclParamHandle_t handle, type *out)                                                             \
    {                                                                                                                  \
        int64_t number;                                                                                                \
                                                                                                                       \
        KL_TRY(read_number(handle, #name, out, min, max, &number));                                                    \
        *out = (type)number;                                                                                           \
        return ncclSuccess;                                                                                            \
    }
GETTER(ncclParamGetI8, int8_t, INT8_MIN, INT8_MAX)
GETTER(ncclParamGetI16, int16_t, INT16_MIN, INT16_MAX)
GETTER(ncclParamGetI32, int32_t, INT32_MIN, INT32_MAX)
GETTER(ncclParamGetI64, int64_t, INT64_MIN, INT64_MAX)
GETTER(ncclParamGetU8, uint8_t, 0, UINT8_MAX)
GETTER(ncclParamGetU16, uint16_t, 0, UINT16_MAX)
GETTER(ncclParamGetU32, uint32_t, 0, UINT32_MAX)
GETTER(ncclParamGetU64, uint64_t, 0, INT64_MAX)

/* ---- texts ---- */

_Static_assert((int)KL_PARAM_TEXT <= (int)KL_THREAD_TEXT, "a parameter's text is one of a thread's");

/* Until the thread's next call. */
static ncclResult_t show(ncclParamHandle_t handle, const char *function, const char **text)
{
    char *shown = kl_thread_text(KL_TEXT_PARAM);
    struct value value;

    if (!shown) return KL_NOMEM("the text of a parameter");
    KL_TRY(read_value(handle, function, &value));
    memcpy(shown, value.text, sizeof value.text);
    *text = shown;
    return ncclSuccess;
}

KL_PNCCL(ncclParamGetStr);
ncclResult_t ncclParamGetStr(ncclParamHandle_t handle, const char **out)
{
    if (!out) return KL_FAIL(ncclInvalidArgument, "ncclParamGetStr: the result pointer is NULL");
    return show(handle, "ncclParamGetStr", out);
}

/* The bytes of a number, or a text with its zero. */
KL_PNCCL(ncclParamGet);
ncclResult_t ncclParamGet(ncclParamHandle_t handle, void *out, int maxLen, int *len)
{
    struct value value;

    if (!out || !len) return KL_FAIL(ncclInvalidArgument, "ncclParamGet: the result pointer is NULL");
    KL_TRY(read_value(handle, "ncclParamGet", &value));
    bool is_text = value.row->type == KL_PARAM_TYPE_STRING;
    size_t bytes = is_text ? strlen(value.text) + 1 : sizeof value.number;
    if (maxLen < 0 || bytes > (size_t)maxLen)
        return KL_FAIL(ncclInvalidArgument, "ncclParamGet: %s has %zu bytes, there is room for %d", value.row->name,
                       bytes, maxLen);
    memcpy(out, is_text ? (const void *)value.text : &value.number, bytes);
    *len = (int)bytes;
    return ncclSuccess;
}

KL_PNCCL(ncclParamGetParameter);
ncclResult_t ncclParamGetParameter(const char *key, const char **value, int *valueLen)
{
    ncclParamHandle_t handle;

    if (!value || !valueLen) return KL_FAIL(ncclInvalidArgument, "ncclParamGetParameter: the result pointer is NULL");
    KL_TRY(pncclParamBind(&handle, key));
    KL_TRY(show(handle, "ncclParamGetParameter", value));
    *valueLen = (int)strlen(*value);
    return ncclSuccess;
}

/* ---- all of them ---- */

static const char **keys; /* made once */
static int nkeys;

static void list_keys(void)
{
    for (int listing = 0; listing < 2; listing++) {
        int n = 0;
        for (const struct kl_param_set *const *set = kl_param_registry.sets; *set; set++)
            for (size_t i = 0; i < (*set)->nparams; i++, n++)
                if (listing) keys[n] = (*set)->params[i].name;
        if (!listing) keys = calloc((size_t)n, sizeof *keys);
        if (!keys) return;
        nkeys = n;
    }
}

KL_PNCCL(ncclParamGetAllParameterKeys);
ncclResult_t ncclParamGetAllParameterKeys(const char ***table, int *tableLen)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (!table || !tableLen)
        return KL_FAIL(ncclInvalidArgument, "ncclParamGetAllParameterKeys: the result pointer is NULL");
    pthread_once(&once, list_keys);
    if (!keys) return KL_NOMEM("the names of parameters");
    *table = keys;
    *tableLen = nkeys;
    return ncclSuccess;
}

KL_PNCCL(ncclParamDumpAll);
void ncclParamDumpAll(void)
{
    struct value value;

    for (const struct kl_param_set *const *set = kl_param_registry.sets; *set; set++)
        for (size_t i = 0; i < (*set)->nparams; i++)
            if (!read_value((ncclParamHandle_t)(uintptr_t) & (*set)->params[i], "ncclParamDumpAll", &value))
                KL_INFO(KL_ENV, "%s=%s", value.row->name, value.text);
}

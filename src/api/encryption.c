/* SPDX-License-Identifier: Apache-2.0 */
/** encryption.c - ncclSetEncryption: settings of the program, below those of the user. */
#include "api/api.h"
#include "base/error.h"
#include "base/param.h"

#include <string.h>

enum { LEAST_KEY_BYTES = 32 }; /* as NCCL 2.32 has it */

static ncclResult_t check_head(const ncclEncryptionConfig_t *c)
{
    size_t size = 0;

    if (c) memcpy(&size, c, sizeof size);
    if (size < sizeof *c || c->magic != NCCL_API_MAGIC)
        return KL_FAIL(ncclInvalidArgument, "ncclSetEncryption: the configuration does not begin as one does: start it "
                                            "with NCCL_ENCRYPTION_CONFIG_INITIALIZER");
    if (c->mode != NCCL_ENCRYPTION_MODE_NONE && c->mode != NCCL_ENCRYPTION_MODE_PSK)
        return KL_FAIL(ncclInvalidArgument, "ncclSetEncryption: mode %d; there are %d (none) and %d (pre-shared key)",
                       c->mode, NCCL_ENCRYPTION_MODE_NONE, NCCL_ENCRYPTION_MODE_PSK);
    return ncclSuccess;
}

static ncclResult_t check_key(const char *psk)
{
    const size_t bytes = psk ? strnlen(psk, KL_PARAM_TEXT) : 0;

    if (!psk)
        return KL_FAIL(ncclInvalidArgument, "ncclSetEncryption: NCCL_ENCRYPTION_MODE_PSK needs psk, which is NULL");
    if (bytes < LEAST_KEY_BYTES || bytes == KL_PARAM_TEXT)
        return KL_FAIL(ncclInvalidArgument, "ncclSetEncryption: psk has %s%zu bytes, and needs %d to %d",
                       bytes == KL_PARAM_TEXT ? "at least " : "", bytes, LEAST_KEY_BYTES, KL_PARAM_TEXT - 1);
    return ncclSuccess;
}

KL_PNCCL(ncclSetEncryption);
ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t *config)
{
    KL_TRY(check_head(config));
    const bool on = config->mode == NCCL_ENCRYPTION_MODE_PSK;
    if (on) KL_TRY(check_key(config->psk));
    const bool set = kl_settings_program("KOLO_PSK", on ? config->psk : "", "ncclSetEncryption") &&
                     kl_settings_program("KOLO_NET_CRYPT", on ? "1" : "", "ncclSetEncryption");
    return set ? ncclSuccess : KL_NOMEM("the settings of ncclSetEncryption");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "device/visible.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NONE = -1, MOST = 1 << 12, UUID_TEXT = 41 };

/* ---- UUIDs ---- */

/* SplitMix64's finaliser: similar inputs have unrelated results. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void kl_uuid_of(uint64_t host, int device, unsigned char uuid[16])
{
    uint64_t half[2] = {mix(host + 0x9e3779b97f4a7c15u * ((uint64_t)device + 1)), 0};

    half[1] = mix(half[0] + 0x9e3779b97f4a7c15u);
    memcpy(uuid, half, 16);
    uuid[6] = (unsigned char)((uuid[6] & 0x0f) | 0x80); /* version 8: custom */
    uuid[8] = (unsigned char)((uuid[8] & 0x3f) | 0x80);
}

static void write_uuid(const unsigned char u[16], char text[UUID_TEXT])
{
    snprintf(text, UUID_TEXT, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

/* ---- entries ---- */

static const char *skip_blanks(const char *at)
{
    while (isspace((unsigned char)*at)) at++;
    return at;
}

/* The only device whose UUID begins with these characters; -1 if there is not exactly one. */
static int find_uuid(const char *begin, size_t length, int count, uint64_t host)
{
    unsigned char uuid[16];
    char text[UUID_TEXT];
    int found = NONE;

    for (int i = 0; i < count; i++) {
        kl_uuid_of(host, i, uuid);
        write_uuid(uuid, text);
        if (length >= sizeof text || strncasecmp(text, begin, length)) continue;
        if (found != NONE) return NONE;
        found = i;
    }
    return found;
}

/* Parse the ordinal at *at and advance *at. */
static int read_ordinal(const char **at)
{
    char *end;
    long n = strtol(*at, &end, 10);
    bool fits = isdigit((unsigned char)**at) && n < MOST;

    *at = skip_blanks(end);
    return fits && (!**at || **at == ',') ? (int)n : NONE;
}

static int read_entry(const char **at, int count, uint64_t host)
{
    *at = skip_blanks(*at);
    if (strncmp(*at, "GPU-", 4)) {
        int n = read_ordinal(at);
        return n < count ? n : NONE;
    }
    const char *begin = *at;
    size_t length = strcspn(begin, ", \t\n");
    *at = skip_blanks(begin + length);
    return length > 4 ? find_uuid(begin, length, count, host) : NONE;
}

static bool is_in(const int *list, int n, int device)
{
    for (int i = 0; i < n; i++)
        if (list[i] == device) return true;
    return false;
}

/* ---- lists ---- */

static int all(int count, int *list)
{
    for (int i = 0; i < count; i++) list[i] = i;
    return count;
}

int kl_visible_devices(const char *text, int count, uint64_t host, int *list)
{
    int n = 0;

    if (!text) return all(count, list);
    for (const char *at = text;; at++) {
        int device = read_entry(&at, count, host);
        if (device == NONE) return n;
        if (is_in(list, n, device)) return 0;
        list[n++] = device;
        if (*at != ',') return n;
    }
}

int kl_visible_extent(const char *text)
{
    int extent = 0;

    for (const char *at = text ? skip_blanks(text) : ""; *at; at = skip_blanks(at + 1)) {
        int n = read_ordinal(&at);
        if (n >= extent) extent = n + 1;
        if (n == NONE || *at != ',') break;
    }
    return extent;
}

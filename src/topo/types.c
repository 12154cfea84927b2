/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/types.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const kl_node_type_name[KL_NODE_TYPES] = {"GPU", "PCI", "NVS", "CPU", "NIC",
                                                      "NET", "GIN", "RMA", "DEV", "CXB"};

const char *const kl_path_type_name[KL_PATH_TYPES] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                      "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

const char *const kl_link_type_name[KL_PATH_TYPES] = {"LOC", "NVL", "", "C2C", "PCI", "", "", "", "", "SYS", "NET", ""};

int kl_path_level(const char *text)
{
    static const int numbered[] = {KL_PATH_LOC, KL_PATH_PIX, KL_PATH_PXB, KL_PATH_PHB, KL_PATH_SYS};

    if (!text || !*text) return -1;
    for (int type = KL_PATH_LOC; type <= KL_PATH_SYS; type++)
        if (!strcmp(text, kl_path_type_name[type])) return type;
    if (!isdigit((unsigned char)*text)) return -1;
    long number = strtol(text, NULL, 10);
    return numbered[number > 4 ? 4 : number];
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

uint64_t kl_busid_parse(const char *text)
{
    uint64_t id = 0;

    for (int digits = 0; *text && digits < 16; text++) {
        if (*text == ':' || *text == '.') continue;
        int digit = hex_digit(*text);
        if (digit < 0) break;
        id = id << 4 | (uint64_t)digit;
        digits++;
    }
    return id;
}

char *kl_busid_text(uint64_t busid, char text[KL_BUSID_TEXT])
{
    snprintf(text, KL_BUSID_TEXT, "%04llx:%02x:%02x.%x", (unsigned long long)(busid >> 20),
             (unsigned)kl_busid_bus(busid), (unsigned)kl_busid_device(busid), (unsigned)(busid & 0xf));
    return text;
}

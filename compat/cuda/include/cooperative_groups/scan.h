/* SPDX-License-Identifier: Apache-2.0 */
/** cooperative_groups/scan.h - inclusive_scan and exclusive_scan, which reduce.h has. */
#include "reduce.h"

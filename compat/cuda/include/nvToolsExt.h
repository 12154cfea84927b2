/* SPDX-License-Identifier: Apache-2.0 */
/** nvToolsExt.h - the name of nvtx3/nvToolsExt.h in older toolkits. */
#include "nvtx3/nvToolsExt.h"

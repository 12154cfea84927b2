/* SPDX-License-Identifier: Apache-2.0 */
/** settings.h - the runtime's settings from the environment, read once. */
#ifndef KL_CUDART_SETTINGS_H
#define KL_CUDART_SETTINGS_H

#include <stdbool.h>

/** CUDA_LAUNCH_BLOCKING: each launch is waited for. */
bool kl_cudart_launch_blocking(void);

#endif

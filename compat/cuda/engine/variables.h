/* SPDX-License-Identifier: Apache-2.0 */
/** variables.h - the copies of variables that a device has. */
#ifndef KL_ENGINE_VARIABLES_H
#define KL_ENGINE_VARIABLES_H

/** A grid will run on the device: all variables have their copy. Cheap when nothing is new. Errors: 2. */
int kl_variables_prepare(int device);

#endif

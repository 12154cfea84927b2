/* SPDX-License-Identifier: Apache-2.0 */
#include "net/net.h"

const struct kl_net *const kl_nets[] = {&kl_net_socket, NULL};

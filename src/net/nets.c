/* SPDX-License-Identifier: Apache-2.0 */
#include "net/collnet.h"

const struct kl_net *const kl_nets[] = {&kl_net_socket, NULL};
const struct kl_collnet *const kl_collnets[] = {&kl_collnet_software, NULL};

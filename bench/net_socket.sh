#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# net_socket.sh - connections over sockets beside bare TCP: through the loopback, and between two network namespaces joined by
# a veth pair where we may make them. They are removed at the end, whatever happens.
set -u
bench=${KOLO_BUILD:-build/release}/bin/net_socket
a=kolo$$a b=kolo$$b

clean() {
    ip netns del $a 2>/dev/null
    ip netns del $b 2>/dev/null
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

echo "loopback"
"$bench" || exit 1
if ! ip netns add $a 2>/dev/null || ! ip netns add $b; then
    echo "no network namespaces here: veth is left out"
    exit 0
fi
ip link add eth0 netns $a type veth peer name eth0 netns $b &&
    ip -n $a addr add 10.99.0.1/24 dev eth0 && ip -n $b addr add 10.99.0.2/24 dev eth0 &&
    ip -n $a link set eth0 up && ip -n $b link set eth0 up || exit 1
echo "veth"
"$bench" $a $b

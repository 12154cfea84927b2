#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# busy.sh same|other LOOPS COMMAND...: run a command beside so many shell loops, in its session or each in one of its own.
# The scheduler shares a core between the processes of a session, and between sessions where autogroup is on.
where=$1 loops=$2
shift 2
[ "$where" = same ] && own= || own=setsid
while [ "$loops" -gt 0 ]; do
    $own setpriv --pdeathsig KILL sh -c 'while :; do :; done' &
    loops=$((loops - 1))
done
"$@"

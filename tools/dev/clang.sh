#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clang.sh TOOL              where this machine has clang, clang++, clang-format or clang-tidy
# clang.sh packages [TOOL]   the Debian packages with them, or with clang-format alone
#
# clang 14 is the version of Debian 12. Formatting depends on the version, and so do findings, so where a distribution has no clang-format and clang-tidy
# of this version, they come from PyPI into build/clang. The compiler is clang 14 where there is one, else the distribution's.
set -eu
cd "$(dirname "$0")/../.."
pinned=14 release=14.0.6
venv=build/clang

packages() {
    . /etc/os-release
    case "$1 $ID ${VERSION_ID-}" in
    'clang-format debian 12' | 'clang-format ubuntu 22.04' | 'clang-format ubuntu 24.04') echo clang-format-$pinned ;;
    clang-format*) echo python3-venv ;;
    ' debian 12' | ' ubuntu 22.04' | ' ubuntu 24.04') echo clang-$pinned clang-format-$pinned clang-tidy-$pinned libclang-rt-$pinned-dev ;;
    *) echo clang libclang-rt-dev python3-venv ;;
    esac
}

compiler() { # compiler clang|clang++
    command -v "$1-$pinned" || command -v "$1" || { echo "no $1 is installed: ./dev setup" >&2 && return 1; }
}

from_pypi() { # from_pypi TOOL
    if [ ! -x "$venv/bin/$1" ]; then
        { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "$1==$release"; } >&2 || {
            echo "$1 $release is neither a package here nor to be had from PyPI" >&2
            return 1
        }
    fi
    echo "$PWD/$venv/bin/$1"
}

case ${1-} in
packages) packages "${2-}" ;;
clang | clang++) compiler "$1" ;;
clang-format | clang-tidy) command -v "$1-$pinned" || from_pypi "$1" ;;
*)
    sed -n '3,4s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# package.sh STEP - one step of ./dev package: source, build, lint or try. Everything is below build/package; the packages go to dist/deb.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
place=$root/build/package
tree=$place/kolo

# The tree as it is here, without ignored files, and debian/. Objects of an earlier build are kept.
source_tree() {
    mkdir -p "$tree" "$place/new"
    rm -rf "$place/new" && mkdir -p "$place/new"
    git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'for f; do [ -e "$f" ] && printf "%s\0" "$f"; done' sh |
        tar -c --null -T - | tar -x -C "$place/new"
    cp -a packaging/debian "$place/new/debian"
    (cd "$tree" && find . -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +)
    (cd "$place/new" && tar -c .) | tar -x -C "$tree" # files keep the sources' times
    rm -rf "$place/new"
}

build() {
    (cd "$tree" && env -u PYTHONPATH PATH="/usr/sbin:/usr/bin:/sbin:/bin" DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS-}" \
        dpkg-buildpackage -us -uc -b -nc)
    rm -rf dist/deb && mkdir -p dist/deb
    cp "$place"/*.deb "$place"/*.changes "$place"/*.buildinfo dist/deb/
    ls -l dist/deb
}

lint() {
    found=$(lintian --allow-root --info --fail-on none -E --no-cfg dist/deb/*.changes) || { echo "$found" && return 1; }
    echo "$found"
    ! echo "$found" | grep -qE '^[EWI]: '
}

case ${1-} in
source) source_tree ;;
build) build ;;
lint) lint ;;
*) echo "usage: package.sh source|build|lint" >&2 && exit 2 ;;
esac

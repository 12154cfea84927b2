#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# lint.sh CHECK - one check of the sources; prints its findings and exits 1 if there are any.
#
#   format    .clang-format is followed                      headers   public headers compile alone as C11 and C++17,
#   clang     no warnings from clang (gcc's stop the build)            the others as C17
#   tidy      the checks of .clang-tidy                      symbols   the libraries export what the headers declare
#   folders   includes point from high to low folders        license   every file names its license
#   circles   no files need each other in a circle           static    a function that only its own file uses is static
#   words     retired words stay out; documents name files, functions and headings that exist
#   scripts   every script of Python and shell can be parsed
set -eu
cd "$(dirname "$0")/../.."

sources() { # sources PATTERN...: files of the project by name
    for pattern in "$@"; do
        find include src compat python tools tests examples $([ -d bench ] && echo bench) -name "$pattern" -type f
    done | sort
}

at_a_time() { # at_a_time N COMMAND...: the command with N lines of the input as arguments, one such process per CPU
    n=$1
    shift
    xargs -P "$(nproc)" -n "$n" "$@"
}

compile_alone() { # compile_alone HEADER COMPILER ARGUMENT...
    header=$1
    shift
    printf '#include "%s"\n' "$header" |
        "$@" -Wall -Wextra -Werror -Wno-unknown-pragmas -fsyntax-only -I. -Iinclude -Isrc - || { echo "$header does not compile alone: $*" && return 1; }
}

case ${1-} in
format)
    clang_format=$(tools/dev/clang.sh clang-format)
    found=$(sources '*.c' '*.h' '*.cc' '*.hpp' '*.cu' '*.cuh' | grep -v '^compat/.*\.cu$' | at_a_time 100 "$clang_format" --dry-run -Werror 2>&1) && exit 0
    echo "not as ./dev fmt would have it:"
    printf '%s\n' "$found" | sed -n 's/^\([^ ]*\):[0-9]*:[0-9]*: error.*/\1/p; /^xargs/p' | sort -u
    exit 1
    ;;
clang)
    python3 tools/dev/clang.py warnings build/release
    ;;
tidy)
    python3 tools/dev/clang.py tidy build/release
    ;;
headers)
    bad=0 clang=$(tools/dev/clang.sh clang) clangxx=$(tools/dev/clang.sh clang++)
    for header in include/*.h; do
        for compiler in gcc "$clang"; do
            compile_alone "$header" "$compiler" -x c -std=c11 -pedantic -Wstrict-prototypes || bad=1
        done
        for compiler in g++ "$clangxx"; do
            compile_alone "$header" "$compiler" -x c++ -std=c++17 -pedantic || bad=1
        done
    done
    find src -name '*.h' | sort | at_a_time 20 tools/dev/lint.sh headers_alone || bad=1
    exit $bad
    ;;
headers_alone) # headers_alone HEADER...: these of src/
    bad=0
    shift
    for header; do
        compile_alone "${header#src/}" gcc -x c -std=c17 -D_GNU_SOURCE || bad=1
    done
    exit $bad
    ;;
symbols)
    python3 tools/dev/symbols.py build/release/libkolo.so build/release/libkoloplan.so
    ;;
folders | words)
    python3 "tools/dev/$1.py"
    ;;
circles | static)
    python3 "tools/dev/$1.py" build/release
    ;;
license)
    # shellcheck disable=SC2046 # names without spaces
    awk '
        FNR <= 2 && /SPDX-License-Identifier: Apache-2\.0/ { good[FILENAME] = 1 }
        FNR == 2 { nextfile }
        END { for (i = 1; i < ARGC; i++) if (!(ARGV[i] in good)) { print ARGV[i] ": no SPDX line at the top"; bad = 1 }; exit bad }
    ' dev .ci/run .clang-format .clang-tidy cmake/* $(sources '*.c' '*.h' '*.cc' '*.hpp' '*.cu' '*.py' '*.sh')
    ;;
scripts)
    bad=0
    for file in dev .ci/run $(sources '*.sh'); do bash -n "$file" || bad=1; done
    sources '*.py' | python3 -c 'import ast, sys; [ast.parse(open(f, encoding="utf-8").read(), f) for f in sys.stdin.read().split()]' || bad=1
    exit $bad
    ;;
*)
    sed -n '3,11s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
